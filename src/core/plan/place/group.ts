// One group worked out: who holds which layers, whether it fits, and how long a token takes alone and
// in company. Everything the search compares comes from here.
import type { Constants } from '../cost/constants.ts'
import { type RankShare, type StageRun, roofSeconds, stageTerms } from '../cost/decode.ts'
import { type CollectiveRegime, type LinkFigures, hopSeconds } from '../cost/links.ts'
import {
  type PrefillStage,
  type PrefillSums,
  prefillChunkTokens,
  prefillSums,
  prefillTerms,
} from '../cost/prefill.ts'
import { type Terms, addTerms, noTerms, totalSeconds } from '../cost/terms.ts'
import { type DecodeSums, decodeSums, stageWork } from '../model/sums.ts'
import type { ModelWork } from '../model/work.ts'
import type { Cluster } from './cluster.ts'
import { type MemorySums, memorySums, rankMemoryBytes } from './memory.ts'
import type { World } from './world.ts'

export interface GroupStage {
  readonly from: number
  readonly to: number
  readonly members: readonly { readonly machine: number; readonly share: number }[]
  readonly sharing: StageRun['sharing']
  readonly world: World | null
}

export interface Group {
  readonly stages: readonly GroupStage[]
}

/** Everything about the ask that does not change during a search, with sums kept per batch size. */
export interface Bench {
  readonly cluster: Cluster
  readonly work: ModelWork
  readonly constants: Constants
  readonly contextTokens: number
  readonly promptTokens: number
  readonly concurrency: number
  readonly mergesRows: boolean
  readonly decode: (batch: number) => DecodeSums
  /** The same with every request grown to the asked context. */
  readonly decodeFull: DecodeSums
  readonly prefill: PrefillSums
  readonly memory: MemorySums
  /** The same without any cache. */
  readonly memoryEmpty: MemorySums
}

/** Tokens of a typical answer: decoding is timed half way through it. */
export const typicalAnswerTokens = 256

export function createBench(options: {
  readonly cluster: Cluster
  readonly work: ModelWork
  readonly constants: Constants
  readonly contextTokens: number
  readonly promptTokens: number
  readonly concurrency: number
  readonly mergesRows: boolean
}): Bench {
  const { work, contextTokens, concurrency } = options
  const typicalTokens = Math.min(contextTokens, options.promptTokens + typicalAnswerTokens / 2)
  const perBatch = new Map<number, DecodeSums>()
  return {
    ...options,
    decode: (batch) => {
      let sums = perBatch.get(batch)
      if (sums === undefined) {
        sums = decodeSums(work, { contextTokens: typicalTokens, batch })
        perBatch.set(batch, sums)
      }
      return sums
    },
    decodeFull: decodeSums(work, { contextTokens, batch: 1 }),
    prefill: prefillSums(work),
    memory: memorySums(work, { contextTokens, concurrency }),
    memoryEmpty: memorySums(work, { contextTokens: 0, concurrency: 0 }),
  }
}

function rankShares(bench: Bench, stage: GroupStage): RankShare[] {
  const shares: RankShare[] = []
  for (const member of stage.members) {
    const machine = bench.cluster.machines[member.machine]
    if (machine !== undefined) shares.push({ figures: machine.figures, share: member.share })
  }
  return shares
}

/** Memory of every rank, in the order of stages and members. */
export function groupMemory(
  bench: Bench,
  group: Group,
  memory: MemorySums = bench.memory,
): number[] {
  return group.stages.flatMap((stage) =>
    stage.members.map((member) =>
      rankMemoryBytes(memory, {
        from: stage.from,
        to: stage.to,
        share: member.share,
        sharing: stage.sharing,
      }),
    ),
  )
}

export function groupFits(bench: Bench, group: Group, memory: MemorySums = bench.memory): boolean {
  const needed = groupMemory(bench, group, memory)
  const members = group.stages.flatMap((stage) => stage.members)
  return members.every(
    (member, index) =>
      (needed[index] ?? Infinity) <=
      (bench.cluster.machines[member.machine]?.machine.memoryFreeBytes ?? 0),
  )
}

type Members = GroupStage['members']

/** What a link between stages costs an answer: a hop for every token written, and the prompt's chunk. */
export function answerHopSeconds(bench: Bench, link: LinkFigures): number {
  const width = bench.work.hidden * 2
  const chunk = Math.min(bench.promptTokens, prefillChunkTokens)
  return (
    typicalAnswerTokens * hopSeconds(link, width, bench.constants) +
    hopSeconds(link, chunk * width, bench.constants)
  )
}

/** The link that a hop from one stage to the next takes: the best for an answer between any two ranks. */
export function bestLink(bench: Bench, a: Members, b: Members): LinkFigures | null {
  let best: LinkFigures | null = null
  let bestSeconds = Infinity
  for (const from of a)
    for (const to of b) {
      const link = bench.cluster.link(from.machine, to.machine)
      if (link === null) continue
      const seconds = answerHopSeconds(bench, link)
      if (best === null || seconds < bestSeconds) {
        best = link
        bestSeconds = seconds
      }
    }
  return best
}

function hopBetween(bench: Bench, a: GroupStage, b: GroupStage, bytes: number): number {
  const link = bestLink(bench, a.members, b.members)
  return link === null ? Infinity : hopSeconds(link, bytes, bench.constants)
}

export interface StageSeconds {
  readonly perStage: readonly Terms[]
  readonly hops: readonly number[]
}

export function stageSeconds(
  bench: Bench,
  group: Group,
  batch: number,
  regime: CollectiveRegime,
  sums: DecodeSums = bench.decode(batch),
): StageSeconds {
  const activationBytes = batch * bench.work.hidden * 2
  const perStage = group.stages.map((stage) =>
    stageTerms({
      work: stageWork(sums, stage.from, stage.to),
      ranks: rankShares(bench, stage),
      sharing: stage.sharing,
      allReduce: stage.world?.allReduce(regime) ?? null,
      activationBytes,
    }),
  )
  const hops = group.stages
    .slice(1)
    .map((stage, index) => hopBetween(bench, group.stages[index] ?? stage, stage, activationBytes))
  return { perStage, hops }
}

/** One request with the group to itself. */
export function aloneTerms(
  bench: Bench,
  group: Group,
  regime: CollectiveRegime,
  sums: DecodeSums = bench.decode(1),
): Terms {
  const { perStage, hops } = stageSeconds(bench, group, 1, regime, sums)
  let terms: Terms = { ...noTerms, hops: hops.reduce((sum, seconds) => sum + seconds, 0) }
  for (const stage of perStage) terms = addTerms(terms, stage)
  return terms
}

/** Tokens per second that memory alone would allow one request. */
export function roofRate(bench: Bench, group: Group): number {
  const sums = bench.decode(1)
  let seconds = 0
  for (const stage of group.stages)
    seconds += roofSeconds({
      work: stageWork(sums, stage.from, stage.to),
      ranks: rankShares(bench, stage),
      sharing: stage.sharing,
    })
  return 1 / seconds
}

/** Tokens per second of all requests together. Stages work on different micro-batches at once. */
export function loadedRate(
  bench: Bench,
  group: Group,
  concurrency: number,
  regime: CollectiveRegime,
): number {
  const stages = group.stages.length
  const inFlight = Math.min(stages, concurrency)
  const rows = bench.mergesRows ? Math.ceil(concurrency / inFlight) : 1
  const { perStage, hops } = stageSeconds(bench, group, rows, regime)
  const seconds = perStage.map(totalSeconds)
  const around =
    seconds.reduce((sum, value) => sum + value, 0) + hops.reduce((sum, value) => sum + value, 0)
  const slowest = Math.max(...seconds.map((value, index) => value + (hops[index] ?? 0)))
  const cycle = Math.max(slowest, around / inFlight)
  // Rows that do not fill the last micro-batch do not count.
  const rowsPerCycle = bench.mergesRows ? concurrency / inFlight : 1
  return rowsPerCycle / cycle
}

export function firstTokenTerms(bench: Bench, group: Group, regime: CollectiveRegime): Terms {
  const stages: PrefillStage[] = group.stages.map((stage) => ({
    from: stage.from,
    to: stage.to,
    ranks: rankShares(bench, stage),
    sharing: stage.sharing,
    allReduce: stage.world?.allReduce(regime) ?? null,
  }))
  const hops = group.stages.slice(1).map((stage, index) => {
    const previous = group.stages[index] ?? stage
    const link = bestLink(bench, previous.members, stage.members)
    return {
      seconds: hopBetween(bench, previous, stage, 0),
      secondsPerByte: link === null ? Infinity : 1 / link.bytesPerSecond,
    }
  })
  const prefill = prefillTerms(
    bench.prefill,
    { stages, hops },
    { promptTokens: bench.promptTokens, constants: bench.constants },
  )
  return addTerms(prefill, aloneTerms(bench, group, regime))
}
