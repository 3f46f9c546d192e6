// The best chain of stages through any of the machines: every set, every order and every cut at once,
// exactly, by dynamic programming over who was used, who came last and how far the layers went. Being
// the least of all chains, it never gets worse when a machine or a link gets better.

/** What may be one stage: a machine, or machines that share layers. */
export interface ChainUnit extends StageSpans {
  /** A bit per machine that it uses. */
  readonly mask: number
}

/** Seconds of an answer for any run of layers on a stage. */
export interface StageSpans {
  /** For each first layer, how far a run may go that still fits. */
  readonly reach: Int32Array
  /** Of the first n layers, where layers simply add up. */
  readonly sums: Float64Array
  /** Of layers `from` to `to`, at from × (layers + 1) + to, where they do not; else null. */
  readonly spans: Float64Array | null
}

/** Seconds of layers `from` to `to`, which must fit. */
export function spanSeconds(stage: StageSpans, from: number, to: number): number {
  const { sums, spans } = stage
  if (spans !== null) return spans[from * sums.length + to] ?? Infinity
  return (sums[to] ?? Infinity) - (sums[from] ?? 0)
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
  /** Where its figures begin in the workspace. */
  readonly at: number
  readonly previous: readonly State[]
}

/** Figures of all states in a few long arrays: thousands of short ones would be slow to make. */
interface Workspace {
  /** By end layer: seconds so far, and the layer the unit began with. */
  readonly seconds: Float64Array
  readonly from: Int16Array
  /** By the layer the unit began with: which of `previous` came before. */
  readonly source: Int16Array
  /** Of the state at work: the least before it by the layer it may begin with, and starts to try. */
  readonly arrive: Float64Array
  readonly queue: Int16Array
}

function createWorkspace(ask: ChainAsk): Workspace {
  const size = ask.layerCount + 1
  let states = 0
  for (const unit of ask.units) states += 1 << (ask.machineCount - bitCount(unit.mask))
  return {
    seconds: new Float64Array(states * size).fill(Infinity),
    from: new Int16Array(states * size).fill(-1),
    source: new Int16Array(states * size).fill(-1),
    arrive: new Float64Array(size),
    queue: new Int16Array(size),
  }
}

/** The best chain of two stages or more for every number of machines. */
export function bestChains(ask: ChainAsk): Map<number, Chain> {
  const { units, layerCount } = ask
  const space = createWorkspace(ask)
  const states = new Map<number, State[]>()
  const best = new Map<number, { state: State; seconds: number }>()
  let at = 0
  for (let mask = 1; mask < 1 << ask.machineCount; mask++) {
    const here: State[] = []
    const size = bitCount(mask)
    for (const [index, unit] of units.entries()) {
      if ((unit.mask & mask) !== unit.mask) continue
      const rest = mask ^ unit.mask
      const state: State = { unit: index, at, previous: states.get(rest) ?? [] }
      if (rest === 0) firstStage(space, unit, at)
      else if (!nextStage(ask, space, unit, state)) continue
      at += layerCount + 1
      here.push(state)
      if (rest === 0 || (mask & ask.pinned) !== ask.pinned) continue
      const seconds = space.seconds[state.at + layerCount] ?? Infinity
      if (seconds < (best.get(size)?.seconds ?? Infinity)) best.set(size, { state, seconds })
    }
    if (here.length > 0) states.set(mask, here)
  }
  return new Map(
    [...best].map(([size, { state, seconds }]) => [
      size,
      { ...traced(space, state, layerCount), seconds },
    ]),
  )
}

function bitCount(mask: number): number {
  let count = 0
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++
  return count
}

function firstStage(space: Workspace, unit: ChainUnit, at: number): void {
  for (let to = 1; to <= (unit.reach[0] ?? 0); to++) {
    space.seconds[at + to] = spanSeconds(unit, 0, to)
    space.from[at + to] = 0
  }
}

/** False when nothing leads here. */
function nextStage(ask: ChainAsk, space: Workspace, unit: ChainUnit, state: State): boolean {
  const { seconds, source } = space
  const arrive = space.arrive.fill(Infinity)
  let any = false
  for (let position = 0; position < state.previous.length; position++) {
    const previous = state.previous[position]
    if (previous === undefined) continue
    const hop = ask.hop(previous.unit, state.unit)
    if (hop === Infinity) continue
    for (let layer = 1; layer < ask.layerCount; layer++) {
      const value = (seconds[previous.at + layer] ?? Infinity) + hop
      if (value >= (arrive[layer] ?? Infinity)) continue
      arrive[layer] = value
      source[state.at + layer] = position
      any = true
    }
  }
  if (!any) return false
  if (unit.spans === null) addUp(space, unit, state.at)
  else tryAll(space, unit, state.at)
  return true
}

/**
 * Where layers add up: the least of arrive(from) − sum(from) over the starts that reach `to`, a window
 * that only moves forward.
 */
function addUp(space: Workspace, unit: ChainUnit, at: number): void {
  const { arrive, queue, seconds, from } = space
  const { sums, reach } = unit
  let head = 0
  let tail = 0
  const gain = (start: number): number => (arrive[start] ?? Infinity) - (sums[start] ?? 0)
  for (let to = 2; to < arrive.length; to++) {
    const value = gain(to - 1)
    if (value !== Infinity) {
      while (tail > head && gain(queue[tail - 1] ?? 0) >= value) tail--
      queue[tail++] = to - 1
    }
    while (tail > head && (reach[queue[head] ?? 0] ?? 0) < to) head++
    if (tail === head) continue
    const start = queue[head] ?? 0
    seconds[at + to] = gain(start) + (sums[to] ?? Infinity)
    from[at + to] = start
  }
}

function tryAll(space: Workspace, unit: ChainUnit, at: number): void {
  const { arrive, seconds, from } = space
  for (let start = 1; start < arrive.length - 1; start++) {
    const sofar = arrive[start] ?? Infinity
    if (sofar === Infinity) continue
    const farthest = unit.reach[start] ?? start
    for (let to = start + 1; to <= farthest; to++) {
      const value = sofar + spanSeconds(unit, start, to)
      if (value >= (seconds[at + to] ?? Infinity)) continue
      seconds[at + to] = value
      from[at + to] = start
    }
  }
}

function traced(
  space: Workspace,
  last: State,
  layerCount: number,
): Pick<Chain, 'units' | 'bounds'> {
  const units: number[] = []
  const bounds = [layerCount]
  let state: State | undefined = last
  while (state !== undefined) {
    const from: number = space.from[state.at + (bounds[0] ?? 0)] ?? 0
    units.unshift(state.unit)
    bounds.unshift(from)
    state = state.previous[space.source[state.at + from] ?? -1]
  }
  return { units, bounds }
}
