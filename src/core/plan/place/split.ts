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

/** Layer boundaries, one more than stages; null when no cut fits. Every stage holds a layer. */
export function splitLayers(
  stages: readonly StageCosts[],
  layerCount: number,
  combine: Combine,
): number[] | null {
  if (stages.length <= fineStagesMax) return cutAt(stages, layerCount, combine, 1)
  // Many stages are cut in steps of a few layers, and layer by layer only where that does not fit.
  const step = Math.ceil(layerCount / coarseBoundaries)
  return (
    cutAt(stages, layerCount, combine, step) ??
    (step > 1 ? cutAt(stages, layerCount, combine, 1) : null)
  )
}

const fineStagesMax = 6
const coarseBoundaries = 48

/** Dynamic programming over stages and boundaries; boundaries stand at multiples of `step`. */
function cutAt(
  stages: readonly StageCosts[],
  layerCount: number,
  combine: Combine,
  step: number,
): number[] | null {
  const count = stages.length
  if (count === 0 || count > layerCount) return null
  let best = new Float64Array(layerCount + 1).fill(Infinity)
  best[0] = 0
  const origins: Int32Array[] = []
  for (const [index, stage] of stages.entries()) {
    const next = new Float64Array(layerCount + 1).fill(Infinity)
    const origin = new Int32Array(layerCount + 1).fill(-1)
    const restStages = count - index - 1
    const lastTo = layerCount - restStages
    const { costs, last } = stage
    for (let from = index === 0 ? 0 : step; from < lastTo; from += step) {
      const before = best[from] ?? Infinity
      if (before === Infinity) continue
      const start = costs[from] ?? 0
      const firstTo = restStages === 0 ? layerCount : from + step
      const reach = Math.min(lastTo, stage.reach[from] ?? 0)
      for (let to = firstTo; to <= reach; to += step) {
        const own = (costs[to] ?? 0) - start + (to === layerCount ? last : 0)
        const value = combine === 'sum' ? before + own : Math.max(before, own)
        if (value < (next[to] ?? Infinity)) {
          next[to] = value
          origin[to] = from
        }
      }
    }
    best = next
    origins.push(origin)
  }
  if (best[layerCount] === Infinity) return null
  const bounds = [layerCount]
  for (let index = count - 1; index >= 0; index--) {
    const from = origins[index]?.[bounds[0] ?? 0] ?? -1
    if (from < 0) return null
    bounds.unshift(from)
  }
  return bounds
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
