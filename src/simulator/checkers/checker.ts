// What a checker is given to look at.
import type { SimHost } from '../host.ts'
import type { Clients } from '../people/clients.ts'
import type { Operators } from '../people/operators.ts'
import type { Observer } from '../observers.ts'
import type { World } from '../world.ts'

export interface Scene {
  readonly world: World
  readonly clients: Clients
  readonly operators: Operators
}

export type Checker = Partial<Observer>

export function nameOf(host: SimHost): string {
  return host.spec.name
}
