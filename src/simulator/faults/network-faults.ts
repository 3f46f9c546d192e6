// What networks do: lose, delay, repeat, reorder and spoil frames; cut links, one way or both, one or all.
import { type Direction, type Wire, directionFrom } from '../wire.ts'
import type { World } from '../world.ts'
import type { Fault, FaultKind, FaultSite } from './fault.ts'

type Change = (direction: Direction, sign: 1 | -1) => void

/** Applies a change to some directions now, and takes it back at the end. */
function impair(
  world: World,
  directions: readonly Direction[],
  fault: { about: string; lastsMs: number; change: Change },
): Fault {
  const { about, lastsMs, change } = fault
  for (const direction of directions) change(direction, 1)
  const undo = (): void => {
    for (const direction of directions) {
      change(direction, -1)
      world.network.release(direction)
    }
  }
  return { about, lastsMs, undo }
}

function nameOf({ spec }: Wire): string {
  return `m${spec.a}-m${spec.b} ${spec.name}`
}

/** One link or many, one direction or both. */
function someDirections({
  world,
  random,
}: FaultSite): { about: string; directions: Direction[] } | null {
  const { wires } = world.network
  const first = random.pick(wires)
  if (first === undefined) return null
  const chosen = random.chance(0.4) ? wires.filter(() => random.chance(0.3)) : [first]
  const isOneWay = random.chance(0.3)
  const directions = chosen.flatMap((wire) => (isOneWay ? [wire.directions[0]] : wire.directions))
  const about = `${chosen.length} links, ${isOneWay ? 'one way' : 'both ways'}, ${nameOf(first)}`
  return { about, directions }
}

function impairment(name: string, weight: number, change: Change): FaultKind {
  return {
    name,
    weight,
    begin(site) {
      const found = someDirections(site)
      if (found === null) return null
      const lastsMs = site.random.between(2000, 40_000)
      return impair(site.world, found.directions, { about: found.about, lastsMs, change })
    },
  }
}

const cut: Change = (direction, sign) => (direction.cuts += sign)
const clog: Change = (direction, sign) => (direction.clogs += sign)

const linkCut: FaultKind = {
  name: 'link-cut',
  weight: 3,
  begin({ world, random }) {
    const wire = random.pick(world.network.wires)
    if (wire === undefined) return null
    const change = random.chance(0.5) ? cut : clog
    const lastsMs = random.between(1000, 40_000)
    const undoes = impair(world, wire.directions, { about: nameOf(wire), lastsMs, change })
    // A cable pulled out is often noticed by the system, and the connection with it.
    if (random.chance(0.4)) world.network.reset(wire)
    return undoes
  },
}

const linkCutOneWay: FaultKind = {
  name: 'link-cut-one-way',
  weight: 2,
  begin({ world, random }) {
    const wire = random.pick(world.network.wires)
    if (wire === undefined) return null
    const direction = random.pick(wire.directions) ?? wire.directions[0]
    const lastsMs = random.between(1000, 40_000)
    return impair(world, [direction], { about: nameOf(wire), lastsMs, change: cut })
  },
}

/** Every link from one machine to another, in one direction only. */
const pairCutOneWay: FaultKind = {
  name: 'pair-cut-one-way',
  weight: 3,
  begin({ world, random }) {
    const wire = random.pick(world.network.wires)
    if (wire === undefined) return null
    const [from, to] = random.chance(0.5) ? [wire.spec.a, wire.spec.b] : [wire.spec.b, wire.spec.a]
    const directions = world.network.between(from, to).map((other) => directionFrom(other, from))
    const lastsMs = random.between(3000, 60_000)
    return impair(world, directions, { about: `m${from} to m${to}`, lastsMs, change: cut })
  },
}

/** Two machines cannot hear each other, and everybody else hears both. */
const pairCut: FaultKind = {
  name: 'pair-cut',
  weight: 3,
  begin({ world, random }) {
    const { a, b } = random.pick(world.network.wires)?.spec ?? { a: 0, b: 0 }
    if (a === b) return null
    const directions = world.network.between(a, b).flatMap((wire) => wire.directions)
    const change = random.chance(0.5) ? cut : clog
    const lastsMs = random.between(3000, 120_000)
    return impair(world, directions, { about: `m${a} and m${b}`, lastsMs, change })
  },
}

const partition: FaultKind = {
  name: 'partition',
  weight: 3,
  begin({ world, random }) {
    const { wires } = world.network
    if (wires.length === 0) return null
    const side = new Set(
      world.hosts.filter(() => random.chance(0.5)).map((host) => host.spec.index),
    )
    const crossing = wires.filter(({ spec }) => side.has(spec.a) !== side.has(spec.b))
    if (crossing.length === 0) return null
    const change = random.chance(0.5) ? cut : clog
    const directions = crossing.flatMap((wire) => wire.directions)
    const about = `${side.size} of ${world.hosts.length} machines`
    return impair(world, directions, { about, lastsMs: random.between(2000, 60_000), change })
  },
}

/** Links of some machines clog one after another, and come free in another order. */
const swizzleClog: FaultKind = {
  name: 'swizzle-clog',
  weight: 2,
  begin({ world, random }) {
    const hosts = world.hosts.filter(() => random.chance(0.5))
    const wires = hosts.flatMap((host) => world.network.wiresOf(host.spec.index))
    if (wires.length === 0) return null
    const lastsMs = random.between(4000, 30_000)
    const clogged = new Set<Direction>()
    const free = (direction: Direction): void => {
      if (!clogged.delete(direction)) return
      direction.clogs -= 1
      world.network.release(direction)
    }
    for (const wire of new Set(wires)) {
      for (const direction of wire.directions) {
        const beginsMs = random.between(0, lastsMs * 0.6)
        world.after(beginsMs, () => {
          if (isOver) return
          clogged.add(direction)
          direction.clogs += 1
        })
        world.after(random.between(beginsMs, lastsMs), () => free(direction))
      }
    }
    let isOver = false
    const undo = (): void => {
      isOver = true
      for (const direction of clogged) free(direction)
    }
    return { about: `${hosts.length} machines`, lastsMs, undo }
  },
}

export const networkFaults: readonly FaultKind[] = [
  impairment('frames-dropped', 3, (direction, sign) => (direction.loss += sign * 0.3)),
  impairment('frames-delayed', 3, (direction, sign) => (direction.extraDelayMs += sign * 700)),
  impairment('frames-duplicated', 2, (direction, sign) => (direction.duplication += sign * 0.4)),
  impairment('frames-reordered', 2, (direction, sign) => (direction.isReordering = sign === 1)),
  impairment('frames-corrupted', 2, (direction, sign) => (direction.corruption += sign * 0.02)),
  linkCut,
  linkCutOneWay,
  pairCutOneWay,
  pairCut,
  partition,
  swizzleClog,
]
