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

/** Ranks that are one and the same in everything: dealt as evenly among each other as can be. */
interface Kind {
  readonly rank: DealtRank
  readonly size: number
}

/** Units of each kind's ranks together. */
type KindDeal = readonly number[]

/** Units per rank, at least one each; null when they cannot all be dealt. */
export function dealUnits(ranks: readonly DealtRank[], units: number): number[] | null {
  const kinds = [...new Set(ranks)].map((rank) => ({
    rank,
    size: ranks.filter((other) => other === rank).length,
  }))
  const most = kinds.map(({ rank }) => Math.min(rank.unitsMax, units - ranks.length + 1))
  const soonestPrefill = leastSlowest(kinds, 'prefill', units, most)
  let deal = leastSlowest(kinds, 'decode', units, most)
  if (soonestPrefill === null || deal === null) return null
  const prefillFloor = slowest(kinds, 'prefill', soonestPrefill)
  let best: KindDeal | null = null
  let bestSeconds = Infinity
  // Along the deals that no other beats in both: from the quickest decoding to the quickest prefill.
  while (deal !== null) {
    const decode = slowest(kinds, 'decode', deal)
    if (decode + prefillFloor >= bestSeconds) break
    const within = kinds.map(({ rank }, index) =>
      unitsWithin((count) => rank.decode(count) * asGood <= decode, most[index] ?? 0),
    )
    const refined: KindDeal = leastSlowest(kinds, 'prefill', units, within) ?? deal
    const prefill = slowest(kinds, 'prefill', refined)
    const seconds = slowest(kinds, 'decode', refined) + prefill
    if (seconds < bestSeconds * asGood) {
      best = refined
      bestSeconds = seconds
    }
    const quicker = kinds.map(({ rank }, index) =>
      unitsWithin((count) => rank.prefill(count) < prefill * asGood, most[index] ?? 0),
    )
    deal = leastSlowest(kinds, 'decode', units, quicker)
  }
  return best === null ? null : perRank(ranks, kinds, best)
}

function perRank(ranks: readonly DealtRank[], kinds: readonly Kind[], deal: KindDeal): number[] {
  const dealt = kinds.map(() => 0)
  return ranks.map((rank) => {
    const kind = kinds.findIndex((one) => one.rank === rank)
    const { size } = kinds[kind] ?? { size: 1 }
    const units = deal[kind] ?? 0
    const before = dealt[kind] ?? 0
    dealt[kind] = before + 1
    return Math.floor(units / size) + (before < units % size ? 1 : 0)
  })
}

function slowest(kinds: readonly Kind[], phase: Phase, deal: KindDeal): number {
  let seconds = 0
  for (const [index, { rank, size }] of kinds.entries())
    seconds = Math.max(seconds, rank[phase](Math.ceil((deal[index] ?? 0) / size)))
  return seconds
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
  kinds: readonly Kind[],
  phase: Phase,
  units: number,
  most: readonly number[],
): KindDeal | null {
  let room = 0
  let count = 0
  for (const [index, { size }] of kinds.entries()) {
    const limit = most[index] ?? 0
    if (limit < 1) return null
    room += limit * size
    count += size
  }
  if (room < units) return null
  const deal = kinds.map(({ size }) => size)
  const secondsWithOneMore = (index: number): number => {
    const kind = kinds[index]
    const held = deal[index] ?? 0
    if (kind === undefined || held >= (most[index] ?? 0) * kind.size) return Infinity
    return kind.rank[phase](Math.floor(held / kind.size) + 1)
  }
  const next = kinds.map((_, index) => secondsWithOneMore(index))
  for (let dealt = count; dealt < units; dealt++) {
    let soonest = 0
    for (let index = 1; index < next.length; index++)
      if ((next[index] ?? Infinity) < (next[soonest] ?? Infinity)) soonest = index
    deal[soonest] = (deal[soonest] ?? 0) + 1
    next[soonest] = secondsWithOneMore(soonest)
  }
  return deal
}
