// How much of each layer a rank holds when ranks are unequal: whole heads and whole experts, dealt so
// that an answer is there soonest.
import { rankTerms } from '../cost/decode.ts'
import { prefillChunkTokens, rankChunkTerms } from '../cost/prefill.ts'
import { totalSeconds } from '../cost/terms.ts'
import type { ModelShape } from '../model/shape.ts'
import { stageWork } from '../model/sums.ts'
import { type DealtRank, dealUnits } from './deal.ts'
import { type Bench, typicalAnswerTokens } from './group.ts'
import { rankMemoryBytes } from './memory.ts'

/** Heads that can be dealt out: KV heads with their queries, or the heads of a latent. */
export function dealtHeads(shape: ModelShape): number {
  return Math.min(
    ...shape.kinds.map((kind) =>
      kind.attention.kind === 'grouped'
        ? kind.attention.kvHeads
        : kind.attention.kind === 'latent'
          ? kind.attention.queryHeads
          : kind.attention.heads,
    ),
  )
}

/** More units than this are dealt in bundles: a finer deal would change little. */
const dealtUnitsMax = 128

/** Experts that can be dealt out, in equal bundles where there are many; 0 without a mixture. */
export function dealtExperts(shape: ModelShape): number {
  const totals = shape.kinds.flatMap((kind) => (kind.experts === null ? [] : [kind.experts.count]))
  if (totals.length === 0) return 0
  const experts = Math.min(...totals)
  for (let bundle = 1; bundle <= experts / 16; bundle++)
    if (experts % bundle === 0 && experts / bundle <= dealtUnitsMax) return experts / bundle
  return experts
}

/** What a deal asks again and again: times of a machine by units, kept from set to set. */
export type DealtTimes = Map<string, number>

export interface Deal {
  readonly bench: Bench
  readonly times: DealtTimes
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
  const { bench, sharing, units, times } = deal
  const machine = bench.cluster.machines[index]
  if (machine === undefined) return null
  const { figures, signature } = machine
  const to = bench.work.layers.length
  // Only how many ranks there are counts here, not who they are.
  const others = Array.from({ length: rankCount }, () => ({ figures, share: 0 }))
  const stage = { from: 0, to, ranks: others, sharing, allReduce: null }
  const sums = bench.decode(1)
  const work = stageWork(sums, 0, to)
  const known = (phase: string, compute: (share: number) => number) => (count: number) => {
    const key = `${phase}${sharing}${signature}/${rankCount}/${count}`
    let seconds = times.get(key)
    if (seconds === undefined) {
      seconds = compute(count / units)
      times.set(key, seconds)
    }
    return seconds
  }
  return {
    unitsMax: unitsThatFit(deal, machine.machine.memoryFreeBytes),
    decode: known(
      'd',
      (share) =>
        typicalAnswerTokens * totalSeconds(rankTerms({ ...stage, work }, { figures, share })),
    ),
    prefill: known('p', (share) => {
      const { promptTokens, constants } = bench
      let seconds = 0
      for (let before = 0; before < promptTokens; before += prefillChunkTokens) {
        const tokens = Math.min(prefillChunkTokens, promptTokens - before)
        const options = { tokens, before, constants }
        seconds += totalSeconds(rankChunkTerms(bench.prefill, stage, { figures, share }, options))
      }
      return seconds
    }),
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
