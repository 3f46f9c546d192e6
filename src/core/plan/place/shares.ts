// How much of each layer a rank holds when ranks are unequal: whole heads to the faster ones, experts
// as evenly as memory allows.
import type { ModelShape } from '../model/shape.ts'
import type { Bench } from './group.ts'
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

/**
 * Heads dealt one by one to whoever would be done with one more soonest, as far as memory goes. Null
 * when they cannot all be dealt, or when the result is even anyway.
 */
export function unevenHeads(
  bench: Bench,
  shape: ModelShape,
  members: readonly number[],
): ReadonlyMap<number, number> | null {
  const heads = dealtHeads(shape)
  if (heads < members.length) return null
  const caps = shareCaps(bench, members, 'tensor')
  if (caps === null) return null
  const speeds = members.map(
    (index) => bench.cluster.machines[index]?.figures.memoryBytesPerSecond ?? 1,
  )
  const counts = members.map(() => 1)
  const holds = (position: number): boolean =>
    (counts[position] ?? 0) + 1 <= Math.floor((caps[position] ?? 0) * heads + 1e-9)
  if (caps.some((cap) => cap * heads < 1)) return null
  for (let dealt = members.length; dealt < heads; dealt++) {
    let next = -1
    let soonest = Infinity
    for (let position = 0; position < members.length; position++) {
      const done = ((counts[position] ?? 0) + 1) / (speeds[position] ?? 1)
      if (done < soonest && holds(position)) {
        next = position
        soonest = done
      }
    }
    if (next < 0) return null
    counts[next] = (counts[next] ?? 0) + 1
  }
  if (counts.every((count) => count === counts[0])) return null
  return new Map(
    members.map((index, position) => [index, (counts[position] ?? 0) / heads] as const),
  )
}

/** The largest share each member has room for; null when some have none. */
function shareCaps(
  bench: Bench,
  members: readonly number[],
  sharing: 'tensor' | 'expert',
): number[] | null {
  const to = bench.work.layers.length
  const need = (share: number): number =>
    rankMemoryBytes(bench.memory, { from: 0, to, share, sharing })
  const base = need(0)
  const perShare = need(1) - base
  if (perShare <= 0) return null
  const caps = members.map(
    (index) => ((bench.cluster.machines[index]?.machine.memoryFreeBytes ?? 0) - base) / perShare,
  )
  return caps.some((cap) => cap <= 0) ? null : caps
}

/** Shares of the experts, as even as each rank's memory allows; null when they do not all fit. */
export function expertShares(
  bench: Bench,
  members: readonly number[],
): ReadonlyMap<number, number> | null {
  const caps = shareCaps(bench, members, 'expert')
  if (caps === null || caps.reduce((sum, cap) => sum + cap, 0) < 1) return null
  // Fill those with little room first; the rest share what is left alike.
  const order = members
    .map((_, position) => position)
    .sort((a, b) => (caps[a] ?? 0) - (caps[b] ?? 0))
  const shares = new Map<number, number>()
  let left = 1
  for (const [done, position] of order.entries()) {
    const share = Math.min(caps[position] ?? 0, left / (members.length - done))
    shares.set(members[position] ?? 0, share)
    left -= share
  }
  return shares
}
