// Long prompts: their chunks follow each other through the stages, so an answer takes what every stage
// adds, and the later chunks of the one stage that takes longest for them. The least of that sum is
// found by asking for the best chain within a pace, again and again, until no pace is left that could
// do better.
import { type Chain, type ChainAsk, type ChainSearch, chainSearch } from './chains.ts'

/** Times this close are the same, added up differently. */
const asGood = 1 - 1e-12
/** Asked so often for one plan; more were never seen. */
const searchesMax = 200

/**
 * The best chain of all, exactly, under its number of machines; for other numbers the best that was
 * met on the way, which without later chunks is the best there is.
 */
export function bestChains(ask: ChainAsk): Map<number, Chain> {
  const search = chainSearch(ask)
  const best = search(Infinity)
  if (ask.units.every((unit) => unit.later === null)) return best
  improve(search, best)
  return best
}

interface Interval {
  /** Chains of a pace above `low` and below `high` are in question, */
  readonly low: number
  readonly high: number
  /** and none of them takes less than this, its pace left out. */
  readonly restMin: number
}

function improve(search: ChainSearch, best: Map<number, Chain>): void {
  const quickest = (): number => Math.min(...[...best.values()].map((chain) => chain.seconds))
  const quickestRest = (chains: Map<number, Chain>): Chain | null => {
    let least: Chain | null = null
    for (const chain of chains.values())
      if (least === null || chain.seconds - chain.pace < least.seconds - least.pace) least = chain
    return least
  }
  const asked = (paceMax: number): Chain | null => {
    const found = search(paceMax)
    for (const [size, chain] of found)
      if (chain.seconds < (best.get(size)?.seconds ?? Infinity) * asGood) best.set(size, chain)
    return quickestRest(found)
  }
  const first = quickestRest(best)
  if (first === null) return
  const open: Interval[] = [{ low: 0, high: first.pace, restMin: first.seconds - first.pace }]
  for (let searches = 0; searches < searchesMax; searches++) {
    const interval = open.pop()
    if (interval === undefined) return
    const { low, high, restMin } = interval
    if (high * asGood <= low || restMin + low >= quickest() * asGood) continue
    // The next quicker pace there is, then everything between it and half way down.
    const next = asked(high * asGood)
    if (next === null || next.pace <= low) continue
    const middle = (low + next.pace) / 2
    const rest = next.seconds - next.pace
    const half = asked(middle)
    open.push({ low: middle, high: next.pace, restMin: rest })
    if (half !== null)
      open.push({ low, high: half.pace, restMin: Math.max(rest, half.seconds - half.pace) })
  }
}
