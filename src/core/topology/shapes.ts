// Shapes in a link graph: full meshes, rings, and the pairs that are missing for one. A graph is a
// matrix of cable counts between machines, numbered in their order.

export type CableCounts = readonly (readonly number[])[]

/** A ring through a dozen machines is found at once; a search that takes longer has no ring to find. */
const ringSteps = 200_000

export function missingPairs(counts: CableCounts): readonly (readonly [number, number])[] {
  const missing: [number, number][] = []
  for (let a = 0; a < counts.length; a++)
    for (let b = a + 1; b < counts.length; b++)
      if (countBetween(counts, a, b) === 0) missing.push([a, b])
  return missing
}

export function isMesh(counts: CableCounts): boolean {
  return counts.length > 1 && missingPairs(counts).length === 0
}

export function countBetween(counts: CableCounts, a: number, b: number): number {
  return counts[a]?.[b] ?? 0
}

/**
 * The first ring through all machines in the order of their numbers, starting at machine 0. Two machines
 * with one cable are a ring as well: each is the other's left and right neighbour.
 */
export function findRing(counts: CableCounts): readonly number[] | null {
  const size = counts.length
  if (size < 2) return null
  const path = [0]
  const visited = new Set(path)
  let steps = 0
  const extend = (): boolean => {
    const last = path.at(-1) ?? 0
    if (path.length === size) return countBetween(counts, last, 0) > 0
    for (let next = 1; next < size; next++) {
      steps += 1
      if (steps > ringSteps) return false
      if (visited.has(next) || countBetween(counts, last, next) === 0) continue
      path.push(next)
      visited.add(next)
      if (extend()) return true
      path.pop()
      visited.delete(next)
    }
    return false
  }
  return extend() ? path : null
}

/** Cables between each neighbour and the next that can be used alike: the smallest count around. */
export function ringWidth(counts: CableCounts, ring: readonly number[]): number {
  return Math.min(
    ...ring.map((machine, index) =>
      countBetween(counts, machine, ring[(index + 1) % ring.length] ?? 0),
    ),
  )
}

/** All groups in which every pair is cabled and to which no further machine could be added. */
export function maximalCliques(counts: CableCounts): readonly (readonly number[])[] {
  const cliques: number[][] = []
  const joined = (a: number, b: number): boolean => countBetween(counts, a, b) > 0
  const grow = (
    clique: readonly number[],
    open: readonly number[],
    done: readonly number[],
  ): void => {
    if (open.length === 0 && done.length === 0) {
      if (clique.length > 1) cliques.push([...clique])
      return
    }
    let waiting = [...open]
    let closed = [...done]
    for (const next of open) {
      grow(
        [...clique, next],
        waiting.filter((other) => joined(next, other)),
        closed.filter((other) => joined(next, other)),
      )
      waiting = waiting.filter((other) => other !== next)
      closed = [...closed, next]
    }
  }
  grow(
    [],
    counts.map((_, index) => index),
    [],
  )
  return cliques.toSorted((a, b) => b.length - a.length)
}
