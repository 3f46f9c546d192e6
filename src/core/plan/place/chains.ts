// The best chain of stages through any of the machines: every set, every order and every cut at once,
// exactly, by dynamic programming over who was used, who came last and how far the layers went. Being
// the least of all chains, it never gets worse when a machine or a link gets better.

/** What may be one stage: a machine, or machines that share layers. */
export interface ChainUnit {
  /** A bit per machine that it uses. */
  readonly mask: number
  /** Seconds of an answer for layers `from` to `to`, at from × (layers + 1) + to; infinite where none fit. */
  readonly spans: Float64Array
  /** For each first layer, how far a run may go. */
  readonly reach: Int32Array
}

export interface Chain {
  readonly units: readonly number[]
  readonly bounds: readonly number[]
  readonly seconds: number
}

export interface ChainAsk {
  readonly units: readonly ChainUnit[]
  readonly machineCount: number
  readonly layerCount: number
  /** Seconds of an answer's hops from one unit to another; infinite without a link. */
  readonly hop: (from: number, to: number) => number
  /** Machines that every chain must use, as bits. */
  readonly pinned: number
}

/** The best of everything that ends with one unit, having used certain machines. */
interface State {
  readonly unit: number
  /** By end layer: seconds so far, the layer this unit began with, and the state before it. */
  readonly seconds: Float64Array
  readonly from: Int16Array
  readonly before: (State | null)[]
}

/** The best chain of two stages or more for every number of machines. */
export function bestChains(ask: ChainAsk): Map<number, Chain> {
  const { units, layerCount } = ask
  const states = new Map<number, State[]>()
  const best = new Map<number, { state: State; seconds: number }>()
  for (let mask = 1; mask < 1 << ask.machineCount; mask++) {
    const here: State[] = []
    for (const [index, unit] of units.entries()) {
      if ((unit.mask & mask) !== unit.mask) continue
      const rest = mask ^ unit.mask
      const state =
        rest === 0
          ? firstStage(unit, index, layerCount)
          : nextStage(ask, index, states.get(rest) ?? [])
      if (state === null) continue
      here.push(state)
      const seconds = state.seconds[layerCount] ?? Infinity
      if (rest === 0 || seconds === Infinity || (mask & ask.pinned) !== ask.pinned) continue
      const size = bitCount(mask)
      if (seconds < (best.get(size)?.seconds ?? Infinity)) best.set(size, { state, seconds })
    }
    if (here.length > 0) states.set(mask, here)
  }
  return new Map([...best].map(([size, { state }]) => [size, traced(state, layerCount)]))
}

function bitCount(mask: number): number {
  let count = 0
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++
  return count
}

function firstStage(unit: ChainUnit, index: number, layerCount: number): State {
  const from = new Int16Array(layerCount + 1)
  const seconds = unit.spans.slice(0, layerCount + 1)
  return { unit: index, seconds, from, before: [] }
}

function nextStage(ask: ChainAsk, index: number, previous: readonly State[]): State | null {
  const { layerCount } = ask
  const unit = ask.units[index]
  if (unit === undefined) return null
  // The best of what may come before, for every layer that this unit may begin with.
  const arrive = new Float64Array(layerCount + 1).fill(Infinity)
  const sources: (State | null)[] = Array.from({ length: layerCount + 1 }, () => null)
  let any = false
  for (const state of previous) {
    const hop = ask.hop(state.unit, index)
    if (hop === Infinity) continue
    for (let layer = 1; layer < layerCount; layer++) {
      const seconds = (state.seconds[layer] ?? Infinity) + hop
      if (seconds < (arrive[layer] ?? Infinity)) {
        arrive[layer] = seconds
        sources[layer] = state
        any = true
      }
    }
  }
  if (!any) return null
  const size = layerCount + 1
  const seconds = new Float64Array(size).fill(Infinity)
  const from = new Int16Array(size).fill(-1)
  const { spans, reach } = unit
  for (let start = 1; start < layerCount; start++) {
    const sofar = arrive[start] ?? Infinity
    if (sofar === Infinity) continue
    const farthest = reach[start] ?? start
    for (let to = start + 1; to <= farthest; to++) {
      const value = sofar + (spans[start * size + to] ?? Infinity)
      if (value < (seconds[to] ?? Infinity)) {
        seconds[to] = value
        from[to] = start
      }
    }
  }
  const before = Array.from(from, (start) => (start < 0 ? null : (sources[start] ?? null)))
  return { unit: index, seconds, from, before }
}

function traced(last: State, layerCount: number): Chain {
  const units: number[] = []
  const bounds = [layerCount]
  let state: State | null = last
  while (state !== null) {
    const to: number = bounds[0] ?? 0
    units.unshift(state.unit)
    bounds.unshift(state.from[to] ?? 0)
    state = state.before[to] ?? null
  }
  return { units, bounds, seconds: last.seconds[layerCount] ?? Infinity }
}
