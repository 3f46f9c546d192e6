// One link between two machines, with a fate of its own in each direction.
import type { LinkSpec } from './scenario.ts'

/** What is wrong with one direction of a link right now. Faults add to it and take back what they added. */
export interface Direction {
  /** Nothing gets through. */
  cuts: number
  /** Nothing gets through for now; what waits arrives when the clog is gone, as TCP would have it. */
  clogs: number
  loss: number
  duplication: number
  corruption: number
  /** Later frames may overtake earlier ones. */
  isReordering: boolean
  extraDelayMs: number
  lastArrivalMs: number
  readonly waiting: (() => void)[]
}

export interface Wire {
  readonly spec: LinkSpec
  /** A connection stands. It may stand and yet carry nothing. */
  isUp: boolean
  /** Counts connections: frames of an earlier one are lost with it. */
  session: number
  /** From a to b, from b to a. */
  readonly directions: readonly [Direction, Direction]
  /** When each end last heard the other here: [a, b]. */
  readonly heardMs: [number, number]
}

export function newWire(spec: LinkSpec): Wire {
  return {
    spec,
    isUp: false,
    session: 0,
    directions: [newDirection(), newDirection()],
    heardMs: [-Infinity, -Infinity],
  }
}

function newDirection(): Direction {
  return {
    cuts: 0,
    clogs: 0,
    loss: 0,
    duplication: 0,
    corruption: 0,
    isReordering: false,
    extraDelayMs: 0,
    lastArrivalMs: 0,
    waiting: [],
  }
}

export function isClean(direction: Direction): boolean {
  return (
    direction.cuts === 0 &&
    direction.clogs === 0 &&
    direction.loss === 0 &&
    direction.duplication === 0 &&
    direction.corruption === 0 &&
    direction.extraDelayMs === 0 &&
    !direction.isReordering
  )
}

export function isOpen(direction: Direction): boolean {
  return direction.cuts === 0 && direction.clogs === 0
}

export function directionFrom(wire: Wire, index: number): Direction {
  return wire.spec.a === index ? wire.directions[0] : wire.directions[1]
}

export function otherEnd(wire: Wire, index: number): number {
  return wire.spec.a === index ? wire.spec.b : wire.spec.a
}

export function heardAt(wire: Wire, index: number): number {
  return wire.spec.a === index ? wire.heardMs[0] : wire.heardMs[1]
}

export function noteHeard(wire: Wire, index: number, nowMs: number): void {
  wire.heardMs[wire.spec.a === index ? 0 : 1] = nowMs
}
