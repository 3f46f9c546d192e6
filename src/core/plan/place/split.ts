// Which layers go to which stage, in a given order of stages: the best contiguous cut that memory
// allows, found exactly. Least time in all for one request, or the least slowest stage for many.

export interface StageCosts {
  /** Seconds of the first n layers on this stage. */
  readonly seconds: Float64Array
  /** Seconds that come on top when the stage ends with the last layer. */
  readonly lastSeconds: number
  /** Part of its memory that the first n layers take, and what the last stage adds. */
  readonly room: Float64Array
  readonly lastRoom: number
  /** Whether layers `from` to `to` fit its ranks; shrinking a run never makes it worse. */
  readonly fits: (from: number, to: number) => boolean
}

/** Least time in all, least slowest stage, or most room left for context. */
export type SplitAim = 'sum' | 'slowest' | 'room'

/** Layer boundaries, one more than stages; null when no cut fits. Every stage holds a layer. */
export function splitLayers(
  stages: readonly StageCosts[],
  layerCount: number,
  aim: SplitAim,
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
    for (let from = index; from < lastTo; from++) {
      const before = best[from] ?? Infinity
      if (before === Infinity) continue
      const costs = aim === 'room' ? stage.room : stage.seconds
      const last = aim === 'room' ? stage.lastRoom : stage.lastSeconds
      const start = costs[from] ?? 0
      const firstTo = restStages === 0 ? layerCount : from + 1
      for (let to = firstTo; to <= lastTo; to++) {
        if (!stage.fits(from, to)) break
        const own = (costs[to] ?? 0) - start + (to === layerCount ? last : 0)
        const value = aim === 'sum' ? before + own : Math.max(before, own)
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
