// Since when nothing has been wrong: what a machine could not hear of it need not know.
import type { SimHost } from '../host.ts'
import { isClean } from '../wire.ts'
import type { World } from '../world.ts'

/** Both run, can write, and a link between them carries everything both ways. */
export function canTalk(world: World, a: SimHost, b: SimHost): boolean {
  return (
    isWell(a) &&
    isWell(b) &&
    world.network.between(a.spec.index, b.spec.index).some((wire) => wire.directions.every(isClean))
  )
}

function isWell(host: SimHost): boolean {
  return host.isRunning && !host.disk.isFull
}

/** Every machine runs and every link is well. */
export function isCalm(world: World): boolean {
  return (
    world.hosts.every(isWell) && world.network.wires.every((wire) => wire.directions.every(isClean))
  )
}
