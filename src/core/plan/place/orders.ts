// In which order the stages of a pipeline stand where not all chains are tried (chains.ts): in large
// clusters, and for goals that cut layers otherwise. Few machines: every order. More: the path with the
// cheapest hops.
import { type Bench, answerHopSeconds } from './group.ts'

/** Sets up to these sizes are tried in every order, in clusters of up to four and eight machines. */
const everyOrderMax = { small: 4, middling: 3 } as const
const smallCluster = 4
const middlingCluster = 8
const exactPathMax = 8

function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [
      item,
      ...rest,
    ]),
  )
}

function hop(bench: Bench, a: number, b: number): number {
  const link = bench.cluster.link(a, b)
  return link === null ? Infinity : answerHopSeconds(bench, link)
}

/** The path through all members with the least hop time: exact for few, nearest neighbour beyond. */
function cheapestPath(bench: Bench, members: readonly number[]): number[] {
  if (members.length > exactPathMax) return nearestNeighbours(bench, members)
  const count = members.length
  const full = (1 << count) - 1
  const cost = new Float64Array((full + 1) * count).fill(Infinity)
  const previous = new Int32Array((full + 1) * count).fill(-1)
  for (let last = 0; last < count; last++) cost[(1 << last) * count + last] = 0
  for (let mask = 1; mask <= full; mask++)
    for (let last = 0; last < count; last++) {
      const here = cost[mask * count + last] ?? Infinity
      if (here === Infinity) continue
      for (let next = 0; next < count; next++) {
        if ((mask & (1 << next)) !== 0) continue
        const value = here + hop(bench, members[last] ?? 0, members[next] ?? 0)
        const slot = (mask | (1 << next)) * count + next
        if (value < (cost[slot] ?? Infinity)) {
          cost[slot] = value
          previous[slot] = last
        }
      }
    }
  let last = 0
  for (let index = 1; index < count; index++)
    if ((cost[full * count + index] ?? Infinity) < (cost[full * count + last] ?? Infinity))
      last = index
  const path: number[] = []
  let mask = full
  while (last >= 0 && path.length < count) {
    path.unshift(members[last] ?? 0)
    const before = previous[mask * count + last] ?? -1
    mask &= ~(1 << last)
    last = before
  }
  return path
}

function nearestNeighbours(bench: Bench, members: readonly number[]): number[] {
  const left = new Set(members.slice(1))
  const path = members.slice(0, 1)
  while (left.size > 0) {
    const here = path.at(-1) ?? 0
    let best = -1
    let bestHop = Infinity
    for (const candidate of left) {
      const seconds = hop(bench, here, candidate)
      if (best < 0 || seconds < bestHop) {
        best = candidate
        bestHop = seconds
      }
    }
    path.push(best)
    left.delete(best)
  }
  return path
}

export function stageOrders(
  bench: Bench,
  members: readonly number[],
  clusterSize: number,
): number[][] {
  const { cluster } = bench
  const alike = new Set(members.map((index) => cluster.machines[index]?.signature ?? 0)).size === 1
  if (alike && cluster.uniform) return [[...members]]
  const links = new Set(
    members.flatMap((a, position) =>
      members.slice(position + 1).map((b) => cluster.linkKind(a, b)),
    ),
  )
  if (alike && links.size <= 1) return [[...members]]
  const most =
    clusterSize <= smallCluster
      ? everyOrderMax.small
      : clusterSize <= middlingCluster
        ? everyOrderMax.middling
        : 1
  if (members.length <= most) return permutations(members)
  const path = links.size <= 1 ? [...members] : cheapestPath(bench, members)
  return members.length <= exactPathMax ? [path, [...path].reverse()] : [path]
}
