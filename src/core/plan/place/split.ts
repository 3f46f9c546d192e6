// Which layers go to which stage, in a given order of stages: the best contiguous cut that memory
// allows, found exactly. Least time in all for one request, or the least slowest stage for many.

export interface StageCosts {
  /** What the first n layers cost on this stage. */
  readonly costs: Float64Array
  /** What comes on top when the stage ends with the last layer. */
  readonly last: number
  /** For each first layer, how far a run may go that still fits its ranks. */
  readonly reach: Int32Array
}

/** What layers are cut for: an answer's time, the slowest stage, or room left for context. */
export type SplitAim = 'sum' | 'slowest' | 'room'
/** How the costs of stages combine. */
type Combine = 'sum' | 'most'

/**
 * Layer boundaries, one more than stages; null when no cut fits. Every stage holds a layer. Exact: for
 * each stage and each end the best start is found.
 */
export function splitLayers(
  stages: readonly StageCosts[],
  layerCount: number,
  combine: Combine,
): number[] | null {
  const count = stages.length
  if (count === 0 || count > layerCount) return null
  const size = layerCount + 1
  let before = new Float64Array(size).fill(Infinity)
  let ends = new Float64Array(size)
  const origins = new Int32Array(count * size).fill(-1)
  const queue = new Int32Array(size)
  before[0] = 0
  for (const [index, stage] of stages.entries()) {
    const step: Step = {
      stage,
      before,
      ends: ends.fill(Infinity),
      origin: origins.subarray(index * size, (index + 1) * size),
      first: index,
      last: layerCount - (count - index),
    }
    if (combine === 'sum') addStage(step, queue)
    else widenStage(step)
    if (index === count - 1) finish(step, layerCount, combine)
    const spare = before
    before = ends
    ends = spare
  }
  if (before[layerCount] === Infinity) return null
  const bounds = [layerCount]
  for (let index = count - 1; index >= 0; index--) {
    const from = origins[index * size + (bounds[0] ?? 0)] ?? -1
    if (from < 0) return null
    bounds.unshift(from)
  }
  return bounds
}

/** One stage added: from the best of everything before it to the best with it. */
interface Step {
  readonly stage: StageCosts
  readonly before: Float64Array
  readonly ends: Float64Array
  readonly origin: Int32Array
  /** Starts lie between these; an end is at least one layer further. */
  readonly first: number
  readonly last: number
}

/**
 * Least sum: cost(to) + the least of before(from) − cost(from) over the starts that reach `to`, a window
 * that only moves forward.
 */
function addStage(step: Step, queue: Int32Array): void {
  const { before, ends, origin } = step
  const { costs, reach } = step.stage
  let head = 0
  let tail = 0
  const gain = (from: number): number => (before[from] ?? Infinity) - (costs[from] ?? 0)
  for (let to = step.first + 1; to <= step.last + 1; to++) {
    const from = to - 1
    if (before[from] !== Infinity) {
      const value = gain(from)
      while (tail > head && gain(queue[tail - 1] ?? 0) >= value) tail--
      queue[tail++] = from
    }
    // Starts that cannot reach this far will reach no end after it either.
    while (tail > head && (reach[queue[head] ?? 0] ?? 0) < to) head++
    if (tail > head) {
      const start = queue[head] ?? 0
      ends[to] = gain(start) + (costs[to] ?? 0)
      origin[to] = start
    }
  }
}

/** Least of the larger: starts further back cost this stage more, so the search ends early. */
function widenStage(step: Step): void {
  const { before, ends, origin } = step
  const { costs, reach } = step.stage
  for (let to = step.first + 1; to <= step.last + 1; to++) {
    let least = Infinity
    for (let from = to - 1; from >= step.first && (reach[from] ?? 0) >= to; from--) {
      const own = (costs[to] ?? 0) - (costs[from] ?? 0)
      if (own >= least) break
      const value = Math.max(before[from] ?? Infinity, own)
      if (value < least) {
        least = value
        origin[to] = from
      }
    }
    ends[to] = least
  }
}

/** The last stage also carries the head, so its one end is worked out again. */
function finish(step: Step, layerCount: number, combine: Combine): void {
  const { before, ends, origin, stage } = step
  ends[layerCount] = Infinity
  for (let from = step.first; from < layerCount; from++) {
    const sofar = before[from] ?? Infinity
    if (sofar === Infinity || (stage.reach[from] ?? 0) < layerCount) continue
    const own = (stage.costs[layerCount] ?? 0) - (stage.costs[from] ?? 0) + stage.last
    const value = combine === 'sum' ? sofar + own : Math.max(sofar, own)
    if (value < (ends[layerCount] ?? Infinity)) {
      ends[layerCount] = value
      origin[layerCount] = from
    }
  }
}

/** The farthest end for every start, when a longer run never fits where a shorter one does not. */
export function reachOf(
  layerCount: number,
  fits: (from: number, to: number) => boolean,
): Int32Array {
  const reach = new Int32Array(layerCount + 1)
  let to = 0
  for (let from = 0; from < layerCount; from++) {
    to = Math.max(to, from)
    while (to < layerCount && fits(from, to + 1)) to++
    reach[from] = to
  }
  return reach
}
