// Sums over runs of layers, so that the cost of any stage is a few subtractions. Built once for a
// context and a batch; a search then asks for thousands of stages.
import type { ModelWork } from './work.ts'

/** What one decode step asks of the ranks that hold a run of layers. */
export interface StageWork {
  readonly sharedBytes: number
  readonly replicatedBytes: number
  readonly expertBytes: number
  readonly kvSharedBytes: number
  readonly kvReplicatedBytes: number
  readonly vectorFlops: number
  readonly matrixFlops: number
  readonly flops: number
  readonly kernels: number
  readonly layers: number
  readonly expertLayers: number
}

const fields = [
  'sharedBytes',
  'replicatedBytes',
  'expertBytes',
  'kvSharedBytes',
  'kvReplicatedBytes',
  'vectorFlops',
  'matrixFlops',
  'flops',
  'kernels',
  'layers',
  'expertLayers',
] as const satisfies readonly (keyof StageWork)[]

export interface DecodeSums {
  readonly layerCount: number
  readonly batch: number
  readonly hidden: number
  readonly head: StageWork
  readonly prefix: Readonly<Record<keyof StageWork, Float64Array>>
}

/** Experts that at least one of `batch` tokens visits, when each picks `active` of `total` at random. */
export function expertsTouched(total: number, active: number, batch: number): number {
  if (total === 0 || active === 0) return 0
  return total * (1 - (1 - active / total) ** batch)
}

export function decodeSums(
  work: ModelWork,
  options: { readonly contextTokens: number; readonly batch: number },
): DecodeSums {
  const { contextTokens, batch } = options
  const count = work.layers.length
  const prefix = Object.fromEntries(
    fields.map((field) => [field, new Float64Array(count + 1)]),
  ) as Record<keyof StageWork, Float64Array>
  const accumulate = (index: number, field: keyof StageWork, value: number): void => {
    const sums = prefix[field]
    sums[index + 1] = (sums[index] ?? 0) + value
  }
  for (const [index, layer] of work.layers.entries()) {
    const attended = Math.min(contextTokens, layer.attendTokensMax)
    const kvRead =
      batch *
      (attended * (layer.kvBytesPerToken - layer.indexBytesPerToken) +
        contextTokens * layer.indexBytesPerToken +
        2 * layer.fixedStateBytes)
    const scores = batch * attended * layer.scoreFlopsPerToken
    const hasExperts = layer.expertsTotal > 0
    accumulate(index, 'sharedBytes', layer.sharedBytes)
    accumulate(index, 'replicatedBytes', layer.replicatedBytes)
    accumulate(
      index,
      'expertBytes',
      layer.expertBytes * expertsTouched(layer.expertsTotal, layer.expertsActive, batch),
    )
    accumulate(index, 'kvSharedBytes', layer.kvWays > 1 ? kvRead : 0)
    accumulate(index, 'kvReplicatedBytes', layer.kvWays > 1 ? 0 : kvRead)
    accumulate(index, 'vectorFlops', layer.scoreOnMatrixUnits ? 0 : scores)
    accumulate(index, 'matrixFlops', layer.scoreOnMatrixUnits ? scores : 0)
    accumulate(index, 'flops', batch * layer.flopsPerToken)
    accumulate(index, 'kernels', layer.kernels)
    accumulate(index, 'layers', 1)
    accumulate(index, 'expertLayers', hasExperts ? 1 : 0)
  }
  return {
    layerCount: count,
    batch,
    hidden: work.hidden,
    // Every rank of a world computes the head whole, as mlx-lm shards it.
    head: { ...noWork, replicatedBytes: work.headBytes, flops: batch * work.headFlops, kernels: 3 },
    prefix,
  }
}

export const noWork: StageWork = {
  sharedBytes: 0,
  replicatedBytes: 0,
  expertBytes: 0,
  kvSharedBytes: 0,
  kvReplicatedBytes: 0,
  vectorFlops: 0,
  matrixFlops: 0,
  flops: 0,
  kernels: 0,
  layers: 0,
  expertLayers: 0,
}

const between = (sums: Float64Array, from: number, to: number): number =>
  (sums[to] ?? 0) - (sums[from] ?? 0)

/** The work of layers `from` up to `to`; the last stage also computes the head. */
export function stageWork(sums: DecodeSums, from: number, to: number): StageWork {
  const { prefix } = sums
  const last = to === sums.layerCount ? sums.head : noWork
  return {
    sharedBytes: between(prefix.sharedBytes, from, to) + last.sharedBytes,
    replicatedBytes: between(prefix.replicatedBytes, from, to) + last.replicatedBytes,
    expertBytes: between(prefix.expertBytes, from, to),
    kvSharedBytes: between(prefix.kvSharedBytes, from, to),
    kvReplicatedBytes: between(prefix.kvReplicatedBytes, from, to),
    vectorFlops: between(prefix.vectorFlops, from, to),
    matrixFlops: between(prefix.matrixFlops, from, to),
    flops: between(prefix.flops, from, to) + last.flops,
    kernels: between(prefix.kernels, from, to) + last.kernels,
    layers: to - from,
    expertLayers: between(prefix.expertLayers, from, to),
  }
}
