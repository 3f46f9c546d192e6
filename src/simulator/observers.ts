// Who looks at a run while it happens. Checkers implement what they need of this; the world calls all.
import type { ClusterMessage } from '../core/cluster/messages.ts'
import type { AttemptId, MachineId } from '../core/ids.ts'
import type { AttemptOrder } from '../runtime/attempts.ts'
import type { StepSeen } from '../runtime/machine.ts'
import type { GenerationMessage } from '../wire/generation-messages.ts'
import type { SimHost } from './host.ts'
import type { SimRank } from './rank.ts'
import type { AttemptEnd } from './watch-sink.ts'

export interface Observer {
  booted(host: SimHost): void
  crashed(host: SimHost): void
  /** A turn of some machine's loop; beats come apart, because there are so many. */
  stepped(host: SimHost, step: StepSeen): void
  beatTaken(host: SimHost, step: StepSeen): void
  sent(from: SimHost, to: SimHost, message: ClusterMessage | GenerationMessage): void
  saved(host: SimHost, text: string): void
  launched(rank: SimRank): void
  becameReady(rank: SimRank): void
  /** A rank has heard what to do next. */
  tasked(rank: SimRank): void
  exited(rank: SimRank): void
  signalled(rank: SimRank, signal: 'TERM' | 'KILL'): void
  attempted(host: SimHost, order: AttemptOrder & { readonly machine: MachineId }): void
  /** An attempt says something to its generation, ends, or is given up by it. */
  attemptSpoke(attempt: AttemptId): void
  attemptEnded(attempt: AttemptId, how: AttemptEnd): void
  attemptCancelled(attempt: AttemptId): void
  /** Once a virtual second. */
  second(): void
  /** The last fault is over. */
  healed(): void
  ended(): void
}

const hooks = [
  'booted',
  'crashed',
  'stepped',
  'beatTaken',
  'sent',
  'saved',
  'launched',
  'becameReady',
  'tasked',
  'exited',
  'signalled',
  'attempted',
  'attemptSpoke',
  'attemptEnded',
  'attemptCancelled',
  'second',
  'healed',
  'ended',
] as const satisfies readonly (keyof Observer)[]

/** One observer that passes everything on to many. */
export function together(observers: readonly Partial<Observer>[]): Observer {
  const all: Partial<Record<keyof Observer, (...args: never[]) => void>> = {}
  for (const hook of hooks) {
    const interested = observers.flatMap((observer) => {
      const method: ((...args: never[]) => void) | undefined = observer[hook]
      return method === undefined ? [] : [method.bind(observer)]
    })
    all[hook] = (...args: never[]) => {
      for (const method of interested) method(...args)
    }
  }
  return all as unknown as Observer
}
