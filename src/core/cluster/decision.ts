// What a deciding function returns: facts to take into the state, and effects to perform.
import type { Effect } from '../effects.ts'
import type { ClusterEvent } from './events.ts'

export interface Decision {
  readonly events: ClusterEvent[]
  readonly effects: Effect[]
  /** The events change what should be decided: decide once more before anything else happens. */
  again: boolean
}

export function decision(): Decision {
  return { events: [], effects: [], again: false }
}
