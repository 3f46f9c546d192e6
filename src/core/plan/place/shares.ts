// How much of each layer a rank holds when ranks are unequal: whole heads and whole experts, dealt so
// that an answer is there soonest.
import { rankTerms } from '../cost/decode.ts'
import { rankReadTerms } from '../cost/prefill.ts'
import { totalSeconds } from '../cost/terms.ts'
import type { ModelShape } from '../model/shape.ts'
import { stageWork } from '../model/sums.ts'
import type { ClusterMachine } from './cluster.ts'
import { type DealtRank, dealUnits } from './deal.ts'
import { type Bench, typicalAnswerTokens } from './group.ts'
import { rankMemoryBytes } from './memory.ts'

/** More units than this are dealt in bundles: a finer deal would change little. */
const dealtUnitsMax = 64

/** Units of one size, as many of `count` as can be told apart within the limit. */
function bundled(count: number): number {
  for (let bundle = 1; bundle <= count / 16; bundle++)
    if (count % bundle === 0 && count / bundle <= dealtUnitsMax) return count / bundle
  return count
}

/** Heads that can be dealt out: KV heads with their queries, or the heads of a latent. */
export function dealtHeads(shape: ModelShape): number {
  return bundled(
    Math.min(
      ...shape.kinds.map((kind) =>
        kind.attention.kind === 'grouped'
          ? kind.attention.kvHeads
          : kind.attention.kind === 'latent'
            ? kind.attention.queryHeads
            : kind.attention.heads,
      ),
    ),
  )
}

/** Experts that can be dealt out; 0 without a mixture. */
export function dealtExperts(shape: ModelShape): number {
  const counts = shape.kinds.flatMap((kind) => (kind.experts === null ? [] : [kind.experts.count]))
  return counts.length === 0 ? 0 : bundled(Math.min(...counts))
}

/** Ranks with their times by units, kept from set to set: machines that are alike share one. */
export type DealtRanks = Map<string, DealtRank>

export interface Deal {
  readonly bench: Bench
  readonly ranks: DealtRanks
  readonly sharing: 'tensor' | 'expert'
  readonly units: number
}

/** Each member's share; null when the units cannot all be dealt or do not fit. */
export function dealShares(
  deal: Deal,
  members: readonly number[],
): ReadonlyMap<number, number> | null {
  const { units } = deal
  if (units < members.length) return null
  const ranks: DealtRank[] = []
  for (const machine of members) {
    const rank = dealtRank(deal, machine, members.length)
    if (rank === null || rank.unitsMax < 1) return null
    ranks.push(rank)
  }
  const counts = dealUnits(ranks, units)
  if (counts === null) return null
  return new Map(members.map((index, position) => [index, (counts[position] ?? 0) / units]))
}

function dealtRank(deal: Deal, index: number, rankCount: number): DealtRank | null {
  const machine = deal.bench.cluster.machines[index]
  if (machine === undefined) return null
  const key = `${deal.sharing}/${machine.signature}/${rankCount}`
  let rank = deal.ranks.get(key)
  if (rank === undefined) {
    rank = createRank(deal, machine, rankCount)
    deal.ranks.set(key, rank)
  }
  return rank
}

function createRank(deal: Deal, machine: ClusterMachine, rankCount: number): DealtRank {
  const { bench, sharing, units } = deal
  const { figures } = machine
  const to = bench.work.layers.length
  // Only how many ranks there are counts here, not who they are.
  const others = Array.from({ length: rankCount }, () => ({ figures, share: 0 }))
  const stage = { from: 0, to, ranks: others, sharing, allReduce: null }
  const run = { ...stage, work: stageWork(bench.decode(1), 0, to) }
  const { promptTokens, constants } = bench
  return {
    unitsMax: unitsThatFit(deal, machine.machine.memoryFreeBytes),
    decode: byUnits(
      units,
      (share) => typicalAnswerTokens * totalSeconds(rankTerms(run, { figures, share })),
    ),
    prefill: byUnits(units, (share) =>
      totalSeconds(
        rankReadTerms(
          bench.prefill,
          stage,
          { figures, share },
          { tokens: promptTokens, constants },
        ),
      ),
    ),
  }
}

/** Computed when first asked for. */
function byUnits(units: number, compute: (share: number) => number): (count: number) => number {
  const known = new Float64Array(units + 1).fill(-1)
  return (count) => {
    let seconds = known[count] ?? -1
    if (seconds < 0) {
      seconds = compute(count / units)
      known[count] = seconds
    }
    return seconds
  }
}

function unitsThatFit(deal: Deal, freeBytes: number): number {
  const { bench, sharing, units } = deal
  const to = bench.work.layers.length
  const need = (count: number): number =>
    rankMemoryBytes(bench.memory, { from: 0, to, share: count / units, sharing })
  const base = need(0)
  const perUnit = (need(units) - base) / units
  if (perUnit <= 0) return 0
  let count = Math.min(units, Math.floor((freeBytes - base) / perUnit) + 1)
  while (count > 0 && need(count) > freeBytes) count--
  return Math.max(0, count)
}
