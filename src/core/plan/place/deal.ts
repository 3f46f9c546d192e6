// Dealing whole units (heads, experts) to unequal ranks, exactly: ranks meet after every step, so an
// answer takes the slowest rank's decoding and the slowest rank's reading of the prompt, and the deal
// with the least sum of the two is found. Because it is the least of all deals, a rank that gets
// faster or roomier never makes it worse.

export interface DealtRank {
  /** The most units it has room for. */
  readonly unitsMax: number
  /** Time of all its decoding, and of its prefill, with so many units; more units never take less. */
  readonly decode: (units: number) => number
  readonly prefill: (units: number) => number
}

type Phase = 'decode' | 'prefill'

/** Times this close are the same, added up differently: rounding must not make more units look quicker. */
const asGood = 1 - 1e-12

/** Units per rank, at least one each; null when they cannot all be dealt. */
export function dealUnits(ranks: readonly DealtRank[], units: number): number[] | null {
  const most = ranks.map((rank) => Math.min(rank.unitsMax, units - ranks.length + 1))
  const soonestPrefill = leastSlowest(ranks, 'prefill', units, most)
  let deal = leastSlowest(ranks, 'decode', units, most)
  if (soonestPrefill === null || deal === null) return null
  const prefillFloor = slowest(ranks, 'prefill', soonestPrefill)
  let best: number[] | null = null
  let bestSeconds = Infinity
  // Along the deals that no other beats in both: from the quickest decoding to the quickest prefill.
  while (deal !== null) {
    const decode = slowest(ranks, 'decode', deal)
    if (decode + prefillFloor >= bestSeconds) break
    const within = ranks.map((rank, index) =>
      unitsWithin((count) => rank.decode(count) * asGood <= decode, most[index] ?? 0),
    )
    const refined: number[] = leastSlowest(ranks, 'prefill', units, within) ?? deal
    const prefill = slowest(ranks, 'prefill', refined)
    const seconds = slowest(ranks, 'decode', refined) + prefill
    if (seconds < bestSeconds * asGood) {
      best = refined
      bestSeconds = seconds
    }
    const quicker = ranks.map((rank, index) =>
      unitsWithin((count) => rank.prefill(count) < prefill * asGood, most[index] ?? 0),
    )
    deal = leastSlowest(ranks, 'decode', units, quicker)
  }
  return best
}

function slowest(ranks: readonly DealtRank[], phase: Phase, deal: readonly number[]): number {
  return Math.max(...ranks.map((rank, index) => rank[phase](deal[index] ?? 0)))
}

/** The most units, up to `most`, that still pass a test which fewer units pass too; 0 when none do. */
function unitsWithin(passes: (count: number) => boolean, most: number): number {
  let low = 0
  let high = most
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (passes(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** One by one to whoever would be done soonest with one more: the slowest is then as quick as can be. */
function leastSlowest(
  ranks: readonly DealtRank[],
  phase: Phase,
  units: number,
  most: readonly number[],
): number[] | null {
  let room = 0
  for (const limit of most) {
    if (limit < 1) return null
    room += limit
  }
  if (room < units) return null
  const deal = ranks.map(() => 1)
  const next = ranks.map((rank, index) => ((most[index] ?? 0) > 1 ? rank[phase](2) : Infinity))
  for (let dealt = ranks.length; dealt < units; dealt++) {
    let soonest = 0
    for (let index = 1; index < next.length; index++)
      if ((next[index] ?? Infinity) < (next[soonest] ?? Infinity)) soonest = index
    const held = (deal[soonest] ?? 0) + 1
    deal[soonest] = held
    const rank = ranks[soonest]
    next[soonest] =
      rank !== undefined && held < (most[soonest] ?? 0) ? rank[phase](held + 1) : Infinity
  }
  return deal
}
