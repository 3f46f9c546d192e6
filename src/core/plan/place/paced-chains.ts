// Long prompts: their chunks follow each other through the stages, so an answer takes what every stage
// adds, and the later chunks of the one stage that takes longest for them. The least of that sum is
// found by asking for the best chain within a pace, again and again, until no pace is left that could
// do better.
import {
  type Chain,
  type ChainAsk,
  type ChainSearch,
  type ChainUnit,
  type RunTimes,
  chainSearch,
} from './chains.ts'
import { overlappedShare } from './stage-costs.ts'

/** Times this close are the same, added up differently. */
const asGood = 1 - 1e-12
/** Asked no more often than this; a hundred is the most that was seen. */
const searchesMax = 400
const noLimits = { paceMax: Infinity, restMax: Infinity } as const

/**
 * The best chain of all, exactly, under its number of machines, if it takes less than `secondsMax`; for
 * other numbers a good one, which without later chunks is the best there is.
 */
export function bestChains(ask: ChainAsk, secondsMax: number = Infinity): Map<number, Chain> {
  const search = chainSearch(ask)
  const best = search(noLimits)
  if (ask.units.every((unit) => unit.later === null)) return best
  const least = quickestRest(best)
  for (const [size, guess] of search({ ...noLimits, guidedBy: guide(ask.units) }))
    keepBetter(best, size, guess)
  if (least !== null) improve(search, { best, least, secondsMax })
  return best
}

function keepBetter(best: Map<number, Chain>, size: number, chain: Chain): void {
  if (chain.seconds < (best.get(size)?.seconds ?? Infinity) * asGood) best.set(size, chain)
}

/** The chain that takes least, its pace left out. */
function quickestRest(chains: Map<number, Chain>): Chain | null {
  let least: Chain | null = null
  for (const chain of chains.values())
    if (least === null || chain.seconds - chain.pace < least.seconds - least.pace) least = chain
  return least
}

/** Units as if each stage added a part of its later chunks: a guide to good chains of every size. */
function guide(units: readonly ChainUnit[]): readonly ChainUnit[] {
  const known = new Map<RunTimes, RunTimes>()
  return units.map((unit) => {
    if (unit.later === null) return unit
    const own = known.get(unit.own) ?? added(unit.own, unit.later)
    known.set(unit.own, own)
    return { ...unit, own }
  })
}

function added(own: RunTimes, later: RunTimes): RunTimes {
  const sum = (a: Float64Array, b: Float64Array | null): Float64Array =>
    a.map((value, index) => value + overlappedShare * (b?.[index] ?? 0))
  return {
    sums: sum(own.sums, later.sums),
    spans: own.spans === null ? null : sum(own.spans, later.spans),
  }
}

interface Interval {
  /** Chains of a pace above `low` and below `high` are in question, */
  readonly low: number
  readonly high: number
  /** and none of them takes less than this, its pace left out. */
  readonly restMin: number
}

function improve(
  search: ChainSearch,
  sofar: {
    readonly best: Map<number, Chain>
    readonly least: Chain
    readonly secondsMax: number
  },
): void {
  const { best, least, secondsMax } = sofar
  const quickest = (): number =>
    Math.min(secondsMax, ...[...best.values()].map((chain) => chain.seconds))
  const asked = (low: number, paceMax: number): Chain | null => {
    const found = search({ paceMax, restMax: quickest() - low })
    for (const [size, chain] of found) keepBetter(best, size, chain)
    return quickestRest(found)
  }
  const open: Interval[] = [{ low: 0, high: least.pace, restMin: least.seconds - least.pace }]
  for (let searches = 0; searches < searchesMax; searches += 2) {
    const interval = open.pop()
    if (interval === undefined) return
    const { low, high, restMin } = interval
    if (high * asGood <= low || restMin + low >= quickest() * asGood) continue
    // The next quicker pace there is, then everything between it and half way down.
    const next = asked(low, high * asGood)
    if (next === null || next.pace <= low) continue
    const middle = (low + next.pace) / 2
    const rest = next.seconds - next.pace
    open.push({ low: middle, high: next.pace, restMin: rest })
    const half = asked(low, middle)
    if (half !== null)
      open.push({ low, high: half.pace, restMin: Math.max(rest, half.seconds - half.pace) })
  }
}
