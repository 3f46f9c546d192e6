// The time to read a prompt: matrix products at the machine's rate, collectives per layer, chunks
// that follow each other through the stages of a pipeline.
import { type LayerWork, type ModelWork, layerStoredBytes } from '../model/work.ts'
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

/** Layers counted by kind: a run of layers is a few counts, whatever its length. */
export interface PrefillSums {
  readonly hidden: number
  readonly kinds: readonly {
    readonly work: LayerWork
    readonly storedBytes: number
    readonly expertBytes: number
    readonly counts: Int32Array
  }[]
}

export function prefillSums(work: ModelWork): PrefillSums {
  const kinds = new Map<LayerWork, Int32Array>()
  for (const layer of work.layers)
    if (!kinds.has(layer)) kinds.set(layer, new Int32Array(work.layers.length + 1))
  for (const [kind, counts] of kinds)
    for (const [index, layer] of work.layers.entries())
      counts[index + 1] = (counts[index] ?? 0) + (layer === kind ? 1 : 0)
  return {
    hidden: work.hidden,
    kinds: [...kinds].map(([kind, counts]) => ({
      work: kind,
      storedBytes: layerStoredBytes(kind),
      expertBytes: kind.expertsTotal * kind.expertBytes,
      counts,
    })),
  }
}

function penaltyOf(layer: LayerWork, constants: Constants): number {
  if (layer.prefillClass === 'experts') return constants.expertPenalty
  return layer.prefillClass === 'latent' ? constants.latentPenalty : 1
}

/** One stage reads the first `tokens` of a prompt, chunk after chunk, in step with its slowest rank. */
export function readTerms(
  sums: PrefillSums,
  stage: PrefillStage,
  options: { readonly tokens: number; readonly constants: Constants },
): Terms {
  const { from, to } = stage
  let slowest = noTerms
  for (const rank of stage.ranks) {
    const terms = rankReadTerms(sums, stage, rank, options)
    if (totalSeconds(terms) > totalSeconds(slowest)) slowest = terms
  }
  if (stage.allReduce === null || stage.sharing === 'alone') return slowest
  const perChunk = (stage.sharing === 'tensor' ? 2 : 1) * (to - from)
  const chunks = Math.ceil(options.tokens / prefillChunkTokens)
  return {
    ...slowest,
    collectives: chunks * perChunk * stage.allReduce.latencySeconds,
    wire: perChunk * stage.allReduce.secondsPerByte * options.tokens * sums.hidden * 2,
  }
}

/** One rank of a stage, before it meets the others. */
export function rankReadTerms(
  sums: PrefillSums,
  stage: PrefillStage,
  rank: RankShare,
  options: { readonly tokens: number; readonly constants: Constants },
): Terms {
  let terms = noTerms
  for (let before = 0; before < options.tokens; before += prefillChunkTokens) {
    const tokens = Math.min(prefillChunkTokens, options.tokens - before)
    const { constants } = options
    terms = addTerms(terms, rankChunkTerms(sums, stage, rank, { tokens, before, constants }))
  }
  return terms
}

function rankChunkTerms(
  sums: PrefillSums,
  stage: PrefillStage,
  rank: RankShare,
  options: { readonly tokens: number; readonly before: number; readonly constants: Constants },
): Terms {
  let matmul = 0
  let weights = 0
  let launches = 0
  for (const kind of sums.kinds) {
    const count = (kind.counts[stage.to] ?? 0) - (kind.counts[stage.from] ?? 0)
    if (count === 0) continue
    const seconds = layerSeconds(kind.work, rank, stage, options)
    const cut = stage.sharing === 'tensor' ? rank.share : 1
    // Weights must all be read once per chunk; that hides behind the arithmetic or shows beyond it.
    const expertCut = stage.sharing === 'expert' ? rank.share : cut
    const bytes = (kind.storedBytes - kind.expertBytes) * cut + kind.expertBytes * expertCut
    const read = bytes / rank.figures.memoryBytesPerSecond
    matmul += count * seconds
    weights += count * Math.max(0, read - seconds)
    launches += count * kind.work.kernels * rank.figures.kernelSeconds
  }
  return { ...noTerms, matmul, weights, launches }
}

/** Arithmetic of one layer on one rank. */
function layerSeconds(
  layer: LayerWork,
  rank: RankShare,
  stage: PrefillStage,
  options: { readonly tokens: number; readonly before: number; readonly constants: Constants },
): number {
  const { tokens, before, constants } = options
  const penalty = penaltyOf(layer, constants)
  const span = Math.min(2 * before + tokens, 2 * layer.attendTokensMax)
  const attention =
    layer.pairFlops * tokens * span * (layer.prefillClass === 'latent' ? penalty : 1)
  const products = layer.flopsPerToken * tokens * penalty
  const cut = stage.sharing === 'tensor' ? rank.share : 1
  const productCut = stage.sharing === 'expert' ? rank.share : cut
  const repeated =
    layer.prefillClass === 'dense' || stage.ranks.length === 1 ? 0 : constants.expertReplicatedShare
  const shared = productCut * (1 - repeated) + repeated
  return (products * shared + attention * cut) / rank.figures.matmulFlops
}

export interface PrefillPath {
  readonly stages: readonly PrefillStage[]
  /** From each stage to the next: seconds per hop and per byte. */
  readonly hops: readonly { readonly seconds: number; readonly secondsPerByte: number }[]
}

/**
 * Chunks follow each other through the stages: the first one passes through all of them, and then the
 * stage that takes longest for the rest sets the pace.
 */
export function prefillTerms(
  sums: PrefillSums,
  path: PrefillPath,
  options: { readonly promptTokens: number; readonly constants: Constants },
): Terms {
  const { promptTokens, constants } = options
  const tokens = Math.min(promptTokens, prefillChunkTokens)
  const firsts = path.stages.map((stage) => readTerms(sums, stage, { tokens, constants }))
  const wholes =
    tokens === promptTokens
      ? firsts
      : path.stages.map((stage) => readTerms(sums, stage, { tokens: promptTokens, constants }))
  let pacing = 0
  let longest = -Infinity
  for (const [index, whole] of wholes.entries()) {
    const rest = totalSeconds(whole) - totalSeconds(firsts[index] ?? noTerms)
    if (rest <= longest) continue
    longest = rest
    pacing = index
  }
  let hops = 0
  for (const hop of path.hops) hops += hop.seconds + hop.secondsPerByte * tokens * sums.hidden * 2
  let terms: Terms = { ...noTerms, hops }
  for (const [index, first] of firsts.entries())
    terms = addTerms(terms, index === pacing ? (wholes[index] ?? first) : first)
  return terms
}
