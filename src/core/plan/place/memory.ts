// What a rank keeps in memory: weights, cache for the asked context and requests, what prefill writes
// out on the way, and the runtime itself. A plan that does not fit is not a plan.
import { GB } from '../../units.ts'
import { type LayerWork, type ModelWork, layerStoredBytes } from '../model/work.ts'

/** mlx-lm's caches grow in steps of this many tokens. */
const cacheStepTokens = 256
/** Interpreter, MLX, Metal heaps and tokenizer of one rank. */
const runtimeBytes = 0.8 * GB
/** Allocator slack on top of weights and caches. */
const slackShare = 0.03
/** Prefill takes smaller chunks rather than write more scores than this. */
const scoreBytesMax = 4 * GB
const chunkTokens = 2048
/** Arrays of the hidden width that live at once in a layer. */
const activationCopies = 12

export interface MemoryAsk {
  readonly contextTokens: number
  readonly concurrency: number
}

function cacheTokens(layer: LayerWork, contextTokens: number): number {
  const grown = Math.ceil(contextTokens / cacheStepTokens) * cacheStepTokens
  return Math.min(grown, layer.kvTokensMax)
}

/** Cache of one layer for all requests, every row as long as the longest: rows are padded to it. */
function layerCacheBytes(layer: LayerWork, ask: MemoryAsk): number {
  return (
    ask.concurrency *
    (cacheTokens(layer, ask.contextTokens) * layer.kvBytesPerToken + layer.fixedStateBytes)
  )
}

/** Bytes of a run of layers, split by what a tensor split cuts, an expert split cuts, and the rest. */
export interface MemorySums {
  readonly work: ModelWork
  readonly cut: Float64Array
  readonly experts: Float64Array
  readonly whole: Float64Array
  readonly cacheCut: Float64Array
  readonly cacheWhole: Float64Array
  readonly activationBytes: number
}

export function memorySums(work: ModelWork, ask: MemoryAsk): MemorySums {
  const count = work.layers.length
  const zero = (): Float64Array => new Float64Array(count + 1)
  const sums = { cut: zero(), experts: zero(), whole: zero(), cacheCut: zero(), cacheWhole: zero() }
  const add = (array: Float64Array, index: number, value: number): void => {
    array[index + 1] = (array[index] ?? 0) + value
  }
  let scores = 0
  for (const [index, layer] of work.layers.entries()) {
    const cache = layerCacheBytes(layer, ask)
    const experts = layer.expertsTotal * layer.expertBytes
    add(sums.cut, index, layerStoredBytes(layer) - layer.replicatedBytes - experts)
    add(sums.experts, index, experts)
    add(sums.whole, index, layer.replicatedBytes)
    add(sums.cacheCut, index, layer.kvWays > 1 ? cache : 0)
    add(sums.cacheWhole, index, layer.kvWays > 1 ? 0 : cache)
    scores = Math.max(scores, layer.scoreBytesPerPair)
  }
  return { work, ...sums, activationBytes: activationBytes(work, ask.contextTokens, scores) }
}

/** What prefill writes out for one chunk; `scoreBytesPerPair` of the layer that writes most. */
function activationBytes(
  work: ModelWork,
  contextTokens: number,
  scoreBytesPerPair: number,
): number {
  const rows = Math.min(chunkTokens, contextTokens)
  const scores = scoreBytesPerPair * rows * contextTokens
  return rows * work.hidden * 2 * activationCopies + Math.min(scores, scoreBytesMax)
}

/** Memory of one rank holding layers `from` to `to`. */
export function rankMemoryBytes(
  sums: MemorySums,
  options: {
    readonly from: number
    readonly to: number
    readonly share: number
    readonly sharing: 'alone' | 'tensor' | 'expert'
  },
): number {
  const { from, to, share, sharing } = options
  const part = (array: Float64Array): number => (array[to] ?? 0) - (array[from] ?? 0)
  const cut = sharing === 'tensor' ? share : 1
  const expertCut = sharing === 'alone' ? 1 : share
  const first = from === 0
  const last = to === sums.work.layers.length
  const ends =
    (first ? sums.work.embeddingBytes : 0) +
    (last && !(first && sums.work.tiedEmbedding) ? sums.work.headBytes : 0)
  const kept =
    part(sums.cut) * cut +
    part(sums.experts) * expertCut +
    part(sums.whole) +
    part(sums.cacheCut) * cut +
    part(sums.cacheWhole) +
    ends
  return kept * (1 + slackShare) + sums.activationBytes + runtimeBytes
}

/**
 * Memory of a rank as a function of the context alone, for asking again and again: layers are counted
 * by kind once, so that one answer costs a few multiplications. `empty` are the sums without cache.
 */
export function rankMemoryByContext(
  empty: MemorySums,
  options: {
    readonly from: number
    readonly to: number
    readonly share: number
    readonly sharing: 'alone' | 'tensor' | 'expert'
    readonly concurrency: number
  },
): (contextTokens: number) => number {
  const { work } = empty
  const { from, to, concurrency } = options
  const counts = new Map<LayerWork, number>()
  for (let index = from; index < to; index++) {
    const layer = work.layers[index]
    if (layer !== undefined) counts.set(layer, (counts.get(layer) ?? 0) + 1)
  }
  const fixed = rankMemoryBytes(empty, options)
  const cut = options.sharing === 'tensor' ? options.share : 1
  return (contextTokens) => {
    let cache = 0
    let scores = 0
    for (const [layer, count] of counts) {
      const bytes = layerCacheBytes(layer, { contextTokens, concurrency }) * count
      cache += layer.kvWays > 1 ? bytes * cut : bytes
      scores = Math.max(scores, layer.scoreBytesPerPair)
    }
    return fixed + cache * (1 + slackShare) + activationBytes(work, contextTokens, scores)
  }
}

/** The longest context that still fits, in whole cache steps, by bisection. */
export function longestContext(
  fits: (contextTokens: number) => boolean,
  contextTokensMax: number,
): number {
  const limit = Math.min(contextTokensMax, 16 * 1024 * 1024)
  if (!fits(1)) return 0
  if (fits(limit)) return limit
  let low = 1
  let high = limit
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle
  }
  return low < cacheStepTokens ? low : Math.floor(low / cacheStepTokens) * cacheStepTokens
}
