// The time of one decode step: bytes over bandwidth, launches, collectives, hops. A stage held by
// several ranks takes as long as its slowest rank, and then they all meet.
import type { StageWork } from '../model/sums.ts'
import type { MachineFigures } from './figures.ts'
import type { AllReduceModel } from './links.ts'
import { type Terms, noTerms, totalSeconds } from './terms.ts'

/** How the ranks of a stage share its layers. */
export type SharingKind = 'alone' | 'tensor' | 'expert'

export interface RankShare {
  readonly figures: MachineFigures
  /** The part of what can be cut that this rank holds; the parts of a stage add up to 1. */
  readonly share: number
}

export interface StageRun {
  readonly work: StageWork
  readonly ranks: readonly RankShare[]
  readonly sharing: SharingKind
  readonly allReduce: AllReduceModel | null
  /** Bytes of one all-reduced array: batch × hidden × 2. */
  readonly activationBytes: number
}

/** Products of few rows fill the matrix units badly; no open row shows by how much. */
const fewRowsShare = 0.45

/** All-reduces per layer: after attention and after the feed-forward block, or after experts alone. */
function collectivesOf(run: StageRun): number {
  if (run.sharing === 'tensor') return 2 * run.work.layers
  if (run.sharing === 'expert') return run.work.expertLayers
  return 0
}

/**
 * The part of the active experts that the busiest of `ranks` holds, when a token's experts fall on
 * ranks at random: the expected maximum of a multinomial, within a percent for the sizes in use.
 */
export function busiestExpertShare(ranks: number, expertsActive: number): number {
  if (ranks <= 1) return 1
  const mean = expertsActive / ranks
  const spread = Math.sqrt(mean * (1 - 1 / ranks))
  const expectedMax = mean + spread * Math.sqrt(2 * Math.log(ranks)) * 0.72
  return Math.min(1, expectedMax / expertsActive)
}

/** One rank of a stage, before it meets the others. */
export function rankTerms(
  run: Omit<StageRun, 'allReduce' | 'activationBytes'>,
  rank: RankShare,
): Terms {
  const { work, sharing } = run
  const { figures } = rank
  const cut = sharing === 'tensor' ? rank.share : 1
  const expertCut =
    sharing === 'expert'
      ? Math.min(
          1,
          busiestExpertShare(run.ranks.length, typicalActiveExperts) *
            rank.share *
            run.ranks.length,
        )
      : cut
  const weightBytes = work.sharedBytes * cut + work.expertBytes * expertCut + work.replicatedBytes
  const weights = weightBytes / figures.memoryBytesPerSecond
  const arithmetic = (work.flops * cut) / (figures.matmulFlops * fewRowsShare)
  const cacheBytes = work.kvSharedBytes * cut + work.kvReplicatedBytes
  return {
    ...noTerms,
    weights,
    // Arithmetic hides behind the reading of weights until there are many rows.
    matmul: Math.max(0, arithmetic - weights),
    cache: cacheBytes / figures.memoryBytesPerSecond,
    scores:
      (work.vectorFlops * cut) / figures.vectorFlops +
      (work.matrixFlops * cut) / (figures.matmulFlops * fewRowsShare),
    launches: work.kernels * figures.kernelSeconds,
  }
}

/** Most mixtures pick eight experts; the split of the busiest rank changes little with it. */
const typicalActiveExperts = 8

export function stageTerms(run: StageRun): Terms {
  let slowest = noTerms
  let slowestSeconds = -1
  for (const rank of run.ranks) {
    const terms = rankTerms(run, rank)
    const seconds = totalSeconds(terms)
    if (seconds > slowestSeconds) {
      slowest = terms
      slowestSeconds = seconds
    }
  }
  const collectives = collectivesOf(run)
  if (run.allReduce === null || collectives === 0) return slowest
  return {
    ...slowest,
    collectives: collectives * run.allReduce.latencySeconds,
    wire: collectives * run.allReduce.secondsPerByte * run.activationBytes,
  }
}

/** The least time a step can take: every byte it needs at the memory's peak, and nothing else. */
export function roofSeconds(run: Pick<StageRun, 'work' | 'ranks' | 'sharing'>): number {
  const { work, sharing } = run
  let slowest = 0
  for (const rank of run.ranks) {
    const cut = sharing === 'tensor' ? rank.share : 1
    const expertCut = sharing === 'expert' ? rank.share : cut
    const bytes =
      (work.sharedBytes + work.kvSharedBytes) * cut +
      work.expertBytes * expertCut +
      work.replicatedBytes +
      work.kvReplicatedBytes
    slowest = Math.max(slowest, bytes / rank.figures.memoryPeakBytesPerSecond)
  }
  return slowest
}
