// What a fault is: something that begins, and, unless it was over at once, something to take back.
import type { SimHost } from '../host.ts'
import type { Clients } from '../people/clients.ts'
import type { Operators } from '../people/operators.ts'
import type { Random } from '../random.ts'
import type { World } from '../world.ts'

export interface FaultSite {
  readonly world: World
  readonly clients: Clients
  readonly operators: Operators
  readonly random: Random
}

/** Lasts until undone; a fault of one moment has nothing to undo. */
export interface Fault {
  readonly about: string
  readonly lastsMs: number
  readonly undo: () => void
}

export interface FaultKind {
  readonly name: string
  /** How often it is drawn against the others. */
  readonly weight: number
  /** Null when there is nothing here it could happen to. */
  begin(site: FaultSite): Fault | null
}

export const nothingToUndo = (): void => undefined

export function momentary(about: string): Fault {
  return { about, lastsMs: 0, undo: nothingToUndo }
}

export function someHost(
  { world, random }: FaultSite,
  suits: (host: SimHost) => boolean,
): SimHost | undefined {
  return random.pick(world.hosts.filter(suits))
}

/** Machines that are up and neither paused nor asleep: the next fault does not hide behind an earlier one. */
export function runningHost(site: FaultSite): SimHost | undefined {
  return someHost(site, (host) => host.isRunning)
}
