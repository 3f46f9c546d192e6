// The time to read a prompt: matrix products at the machine's rate, collectives per layer, chunks
// that follow each other through the stages of a pipeline.
import type { ModelWork, PrefillClass } from '../model/work.ts'
import { layerStoredBytes } from '../model/work.ts'
import type { Constants } from './constants.ts'
import type { RankShare, SharingKind } from './decode.ts'
import type { AllReduceModel } from './links.ts'
import { type Terms, addTerms, noTerms, totalSeconds } from './terms.ts'

/** Tokens that a stage takes at once. */
export const prefillChunkTokens = 2048

export interface PrefillStage {
  readonly from: number
  readonly to: number
  readonly ranks: readonly RankShare[]
  readonly sharing: SharingKind
  readonly allReduce: AllReduceModel | null
}

export interface PrefillSums {
  readonly flops: Readonly<Record<PrefillClass, Float64Array>>
  /** Attention of all layers without a window, and the rest as (flops, window) folded per chunk. */
  readonly pairs: Float64Array
  readonly windowPairs: Float64Array
  readonly latentPairs: Float64Array
  readonly windowTokens: number
  readonly stored: Float64Array
  readonly kernels: Float64Array
  readonly hidden: number
}

export function prefillSums(work: ModelWork): PrefillSums {
  const count = work.layers.length
  const zero = (): Float64Array => new Float64Array(count + 1)
  const flops = { dense: zero(), experts: zero(), latent: zero() }
  const pairs = zero()
  const windowPairs = zero()
  const latentPairs = zero()
  const stored = zero()
  const kernels = zero()
  let windowTokens = 0
  const add = (sums: Float64Array, index: number, value: number): void => {
    sums[index + 1] = (sums[index] ?? 0) + value
  }
  for (const [index, layer] of work.layers.entries()) {
    const windowed = Number.isFinite(layer.attendTokensMax)
    if (windowed) windowTokens = Math.max(windowTokens, layer.attendTokensMax)
    for (const kind of ['dense', 'experts', 'latent'] as const)
      add(flops[kind], index, layer.prefillClass === kind ? layer.flopsPerToken : 0)
    const latent = layer.prefillClass === 'latent'
    add(pairs, index, windowed || latent ? 0 : layer.pairFlops)
    add(windowPairs, index, windowed ? layer.pairFlops : 0)
    add(latentPairs, index, latent && !windowed ? layer.pairFlops : 0)
    add(stored, index, layerStoredBytes(layer))
    add(kernels, index, layer.kernels)
  }
  return {
    flops,
    pairs,
    windowPairs,
    latentPairs,
    windowTokens,
    stored,
    kernels,
    hidden: work.hidden,
  }
}

const difference = (sums: Float64Array, from: number, to: number): number =>
  (sums[to] ?? 0) - (sums[from] ?? 0)

/** One stage, one chunk of `tokens` after `before` tokens. */
export function chunkTerms(
  sums: PrefillSums,
  stage: PrefillStage,
  options: { readonly tokens: number; readonly before: number; readonly constants: Constants },
): Terms {
  const { tokens, before, constants } = options
  const { from, to } = stage
  const tensor = stage.sharing === 'tensor'
  const dense = difference(sums.flops.dense, from, to) * tokens
  const experts = difference(sums.flops.experts, from, to) * tokens * constants.expertPenalty
  const latent = difference(sums.flops.latent, from, to) * tokens * constants.latentPenalty
  const full = tokens * (2 * before + tokens)
  const limited = tokens * Math.min(2 * before + tokens, 2 * sums.windowTokens)
  const attention =
    difference(sums.pairs, from, to) * full +
    difference(sums.windowPairs, from, to) * limited +
    difference(sums.latentPairs, from, to) * full * constants.latentPenalty
  const repeated = constants.expertReplicatedShare
  let slowest = 0
  let floor = 0
  let launches = 0
  for (const rank of stage.ranks) {
    const cut = tensor ? rank.share : 1
    const expertCut = stage.sharing === 'expert' ? rank.share : cut
    const mixed = (share: number): number =>
      stage.ranks.length > 1 ? share * (1 - repeated) + repeated : share
    const seconds =
      (dense * cut + (experts + latent) * mixed(expertCut) + attention * cut) /
      rank.figures.matmulFlops
    const read = (difference(sums.stored, from, to) * cut) / rank.figures.memoryBytesPerSecond
    slowest = Math.max(slowest, seconds)
    floor = Math.max(floor, read - seconds)
    launches = Math.max(launches, difference(sums.kernels, from, to) * rank.figures.kernelSeconds)
  }
  const collectives = stage.allReduce === null ? 0 : (tensor ? 2 : 1) * (to - from)
  const terms = { ...noTerms, matmul: slowest, weights: Math.max(0, floor), launches }
  if (stage.allReduce === null || stage.sharing === 'alone') return terms
  return {
    ...terms,
    collectives: collectives * stage.allReduce.latencySeconds,
    wire: collectives * stage.allReduce.secondsPerByte * tokens * sums.hidden * 2,
  }
}

export interface PrefillPath {
  readonly stages: readonly PrefillStage[]
  /** From each stage to the next: seconds per hop and per byte. */
  readonly hops: readonly { readonly seconds: number; readonly secondsPerByte: number }[]
}

/** Chunks enter the first stage one after another; the slowest stage sets the pace. */
export function prefillTerms(
  sums: PrefillSums,
  path: PrefillPath,
  options: { readonly promptTokens: number; readonly constants: Constants },
): Terms {
  const { promptTokens, constants } = options
  let terms: Terms = noTerms
  for (let before = 0; before < promptTokens; before += prefillChunkTokens) {
    const tokens = Math.min(prefillChunkTokens, promptTokens - before)
    const perStage = path.stages.map((stage) =>
      chunkTerms(sums, stage, { tokens, before, constants }),
    )
    if (before === 0) {
      for (const stage of perStage) terms = addTerms(terms, stage)
      let hops = 0
      for (const hop of path.hops)
        hops += hop.seconds + hop.secondsPerByte * tokens * sums.hidden * 2
      terms = addTerms(terms, { ...noTerms, hops })
      continue
    }
    let slowest = perStage[0] ?? noTerms
    for (const stage of perStage) if (totalSeconds(stage) > totalSeconds(slowest)) slowest = stage
    terms = addTerms(terms, slowest)
  }
  return terms
}
