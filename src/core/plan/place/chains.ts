// The best chain of stages through any of the machines: every set, every order and every cut at once,
// exactly, by dynamic programming over who was used, who came last and how far the layers went. Being
// the least of all chains, it never gets worse when a machine or a link gets better. Machines that can
// be swapped are only counted: sixteen of one kind are seventeen sets, not 65,536.

/** What may be one stage: a machine, or machines that share layers. */
export interface ChainUnit extends StageSpans {
  /** How many machines of each class it uses. */
  readonly counts: readonly number[]
}

/** Seconds for any run of layers on a stage. */
export interface RunTimes {
  /** Of the first n layers, where layers simply add up. */
  readonly sums: Float64Array
  /** Of layers `from` to `to`, at from × (layers + 1) + to, where they do not; else null. */
  readonly spans: Float64Array | null
}

export interface StageSpans {
  /** For each first layer, how far a run may go that still fits. */
  readonly reach: Int32Array
  /** Of an answer, but for the later chunks of a long prompt. */
  readonly own: RunTimes
  /** Of those chunks, which the stages read at the same time; null when there are none. */
  readonly later: RunTimes | null
}

/** Seconds of layers `from` to `to`, which must fit. */
export function spanSeconds({ sums, spans }: RunTimes, from: number, to: number): number {
  if (spans !== null) return spans[from * sums.length + to] ?? Infinity
  return (sums[to] ?? Infinity) - (sums[from] ?? 0)
}

export interface Chain {
  readonly units: readonly number[]
  readonly bounds: readonly number[]
  /** Of an answer: what every stage adds, and the later chunks of the stage that takes longest. */
  readonly seconds: number
  /** The part of it that is the later chunks. */
  readonly pace: number
}

export interface ChainAsk {
  readonly units: readonly ChainUnit[]
  /** Machines that can be swapped, by class: how many there are, and whether all must be used. */
  readonly classes: readonly { readonly size: number; readonly pinned: boolean }[]
  readonly layerCount: number
  /** Seconds of an answer's hops from one unit to another; infinite without a link. */
  readonly hop: (from: number, to: number) => number
}

/** The best of everything that ends with one unit, having used certain machines. */
interface State {
  readonly unit: number
  /** Where its figures begin in the workspace. */
  readonly at: number
  readonly previous: readonly State[]
  /** Between these layers it can end; all others are out of reach. */
  first: number
  last: number
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

/** A set of machines: how many of each class, and the sets left when a unit is taken out of it. */
interface ChainSet {
  readonly size: number
  readonly hasPinned: boolean
  readonly ends: readonly { readonly unit: number; readonly rest: number }[]
}

/** Sets are numbered so that every part of a set comes before it; the empty one is 0. */
function chainSets(ask: ChainAsk): ChainSet[] {
  const strides: number[] = []
  let total = 1
  for (const { size } of ask.classes) {
    strides.push(total)
    total *= size + 1
  }
  const weights = ask.units.map((unit) =>
    unit.counts.reduce((sum, count, index) => sum + count * (strides[index] ?? 0), 0),
  )
  return Array.from({ length: total }, (_, code) => {
    const counts = ask.classes.map(
      ({ size }, index) => Math.floor(code / (strides[index] ?? 1)) % (size + 1),
    )
    return {
      size: counts.reduce((sum, count) => sum + count, 0),
      hasPinned: ask.classes.every(({ size, pinned }, index) => !pinned || counts[index] === size),
      ends: ask.units.flatMap((unit, index) =>
        unit.counts.every((count, position) => count <= (counts[position] ?? 0))
          ? [{ unit: index, rest: code - (weights[index] ?? 0) }]
          : [],
      ),
    }
  })
}

/** What is looked for: nothing of a slower pace, and nothing that takes this long, its pace left out. */
export interface ChainLimits {
  readonly paceMax: number
  readonly restMax: number
  /** The same units, guided by other times. */
  readonly guidedBy?: readonly ChainUnit[]
}

/** Finds the best chain of two stages or more for every number of machines. */
export type ChainSearch = (limits: ChainLimits) => Map<number, Chain>

export function chainSearch(ask: ChainAsk): ChainSearch {
  const { layerCount } = ask
  const sets = chainSets(ask)
  const states = sets.reduce((sum, { ends }) => sum + ends.length, 0)
  const space: Workspace = {
    seconds: new Float64Array(states * (layerCount + 1)),
    from: new Int16Array(states * (layerCount + 1)),
    source: new Int16Array(states * (layerCount + 1)),
    arrive: new Float64Array(layerCount + 1),
    queue: new Int16Array(layerCount + 1),
  }
  return ({ paceMax, restMax, guidedBy = ask.units }) => {
    space.seconds.fill(Infinity)
    const units = withinPace(guidedBy, paceMax)
    const left = restMax === Infinity ? null : leastLeft(units, layerCount)
    return searchWithin(ask, { sets, space, units, restMax, left })
  }
}

/**
 * By layer: the least that the layers from there on can take, if every stage could be used again and
 * hops cost nothing. No chain does better.
 */
function leastLeft(units: readonly ChainUnit[], layerCount: number): Float64Array {
  const left = new Float64Array(layerCount + 1).fill(Infinity)
  left[layerCount] = 0
  const kinds = new Map(units.map((unit) => [unit.own, unit]))
  for (let from = layerCount - 1; from >= 0; from--)
    for (const unit of kinds.values())
      for (let to = from + 1; to <= (unit.reach[from] ?? from); to++) {
        const seconds = spanSeconds(unit.own, from, to) + (left[to] ?? Infinity)
        if (seconds < (left[from] ?? Infinity)) left[from] = seconds
      }
  return left
}

/** One search: its limits, and the least that comes after each layer where they matter. */
interface SearchRun {
  readonly sets: readonly ChainSet[]
  readonly space: Workspace
  readonly units: readonly ChainUnit[]
  readonly restMax: number
  readonly left: Float64Array | null
}

function searchWithin(ask: ChainAsk, run: SearchRun): Map<number, Chain> {
  const { layerCount } = ask
  const { space } = run
  const found: (readonly State[])[] = []
  const best = new Map<number, { state: State; seconds: number }>()
  let at = 0
  for (const [code, { size, hasPinned, ends }] of run.sets.entries()) {
    const here: State[] = []
    for (const { unit: index, rest } of ends) {
      const unit = run.units[index]
      if (unit === undefined) continue
      const state: State = { unit: index, at, previous: found[rest] ?? [], first: 1, last: 0 }
      if (rest === 0) firstStage(space, unit, state)
      else nextStage(ask, run, unit, state)
      if (state.last < state.first) continue
      at += layerCount + 1
      here.push(state)
      if (rest === 0 || !hasPinned) continue
      const seconds = space.seconds[state.at + layerCount] ?? Infinity
      if (seconds < (best.get(size)?.seconds ?? Infinity)) best.set(size, { state, seconds })
    }
    found[code] = here
  }
  return new Map(
    [...best].map(([size, { state }]) => {
      const { units, bounds } = traced(space, state, layerCount)
      return [size, timedChain(ask, units, bounds)]
    }),
  )
}

/** A chain with what it takes. */
export function timedChain(
  { units: all, hop }: ChainAsk,
  units: readonly number[],
  bounds: readonly number[],
): Chain {
  let seconds = 0
  for (const [index, unit] of units.entries()) {
    const own = all[unit]?.own
    if (own !== undefined) seconds += spanSeconds(own, bounds[index] ?? 0, bounds[index + 1] ?? 0)
    if (index > 0) seconds += hop(units[index - 1] ?? 0, unit)
  }
  const pace = paceOf(all, units, bounds)
  return { units, bounds, seconds: seconds + pace, pace }
}

/** The later chunks of whichever stage takes longest for them. */
export function paceOf(
  all: readonly ChainUnit[],
  units: readonly number[],
  bounds: readonly number[],
): number {
  let pace = 0
  for (const [index, unit] of units.entries()) {
    const later = all[unit]?.later ?? null
    if (later !== null)
      pace = Math.max(pace, spanSeconds(later, bounds[index] ?? 0, bounds[index + 1] ?? 0))
  }
  return pace
}

/** The same units, but no run of theirs may take longer over the later chunks than this. */
function withinPace(units: readonly ChainUnit[], paceMax: number): readonly ChainUnit[] {
  if (paceMax === Infinity) return units
  // Units of one kind share their times: each kind is worked out once.
  const known = new Map<RunTimes, StageSpans>()
  return units.map((unit) => {
    if (unit.later === null) return unit
    let spans = known.get(unit.later)
    if (spans === undefined) {
      spans = stageWithinPace(unit, unit.later, paceMax)
      known.set(unit.later, spans)
    }
    return { ...unit, reach: spans.reach, own: spans.own }
  })
}

function stageWithinPace(stage: StageSpans, later: RunTimes, paceMax: number): StageSpans {
  const size = stage.reach.length
  const { own } = stage
  if (own.spans === null) {
    const reach = new Int32Array(size)
    let to = 0
    for (let from = 0; from < size - 1; from++) {
      to = Math.max(to, from)
      while (to < (stage.reach[from] ?? 0) && spanSeconds(later, from, to + 1) <= paceMax) to++
      reach[from] = to
    }
    return { ...stage, reach }
  }
  const spans = own.spans.slice()
  for (let from = 0; from < size - 1; from++)
    for (let to = from + 1; to <= (stage.reach[from] ?? from); to++)
      if (spanSeconds(later, from, to) > paceMax) spans[from * size + to] = Infinity
  return { ...stage, own: { ...own, spans } }
}

function firstStage(space: Workspace, unit: ChainUnit, state: State): void {
  state.last = unit.reach[0] ?? 0
  for (let to = 1; to <= state.last; to++) {
    space.seconds[state.at + to] = spanSeconds(unit.own, 0, to)
    space.from[state.at + to] = 0
  }
}

function nextStage(ask: ChainAsk, run: SearchRun, unit: ChainUnit, state: State): void {
  const { space, left, restMax } = run
  const { seconds, source, arrive } = space
  arrive.fill(Infinity)
  let first = ask.layerCount
  let last = 0
  for (let position = 0; position < state.previous.length; position++) {
    const previous = state.previous[position]
    if (previous === undefined) continue
    const hop = ask.hop(previous.unit, state.unit)
    if (hop === Infinity) continue
    const end = Math.min(previous.last, ask.layerCount - 1)
    for (let layer = previous.first; layer <= end; layer++) {
      const value = (seconds[previous.at + layer] ?? Infinity) + hop
      if (value >= (arrive[layer] ?? Infinity)) continue
      if (left !== null && value + (left[layer] ?? 0) >= restMax) continue
      arrive[layer] = value
      source[state.at + layer] = position
      if (layer < first) first = layer
      if (layer > last) last = layer
    }
  }
  if (first > last) return
  if (unit.own.spans === null) addUp(space, unit, state, { first, last })
  else tryAll(space, unit, state, { first, last })
}

/** Layers that the stage may begin with. */
interface Starts {
  readonly first: number
  readonly last: number
}

/**
 * Where layers add up: the least of arrive(from) − sum(from) over the starts that reach `to`, a window
 * that only moves forward.
 */
function addUp(space: Workspace, unit: ChainUnit, state: State, starts: Starts): void {
  const { arrive, queue, seconds, from } = space
  const { reach } = unit
  const { sums } = unit.own
  let head = 0
  let tail = 0
  const gain = (start: number): number => (arrive[start] ?? Infinity) - (sums[start] ?? 0)
  const end = reach[starts.last] ?? 0
  for (let to = starts.first + 1; to <= end; to++) {
    const value = gain(to - 1)
    if (value !== Infinity) {
      while (tail > head && gain(queue[tail - 1] ?? 0) >= value) tail--
      queue[tail++] = to - 1
    }
    while (tail > head && (reach[queue[head] ?? 0] ?? 0) < to) head++
    if (tail === head) continue
    const start = queue[head] ?? 0
    seconds[state.at + to] = gain(start) + (sums[to] ?? Infinity)
    from[state.at + to] = start
    widen(state, to)
  }
}

function tryAll(space: Workspace, unit: ChainUnit, state: State, starts: Starts): void {
  const { arrive, seconds, from } = space
  for (let start = starts.first; start <= starts.last; start++) {
    const sofar = arrive[start] ?? Infinity
    if (sofar === Infinity) continue
    const farthest = unit.reach[start] ?? start
    for (let to = start + 1; to <= farthest; to++) {
      const value = sofar + spanSeconds(unit.own, start, to)
      if (value >= (seconds[state.at + to] ?? Infinity)) continue
      seconds[state.at + to] = value
      from[state.at + to] = start
      widen(state, to)
    }
  }
}

function widen(state: State, layer: number): void {
  if (state.last < state.first) {
    state.first = layer
    state.last = layer
  } else if (layer < state.first) state.first = layer
  else if (layer > state.last) state.last = layer
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
