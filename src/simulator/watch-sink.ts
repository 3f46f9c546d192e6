// Looks at what an attempt says to its generation, without changing it.
import type { AttemptId } from '../core/ids.ts'
import type { AttemptSink } from '../runtime/attempts.ts'
import type { World } from './world.ts'

export type AttemptEnd = 'finished' | 'refused' | 'lost'

export function watchSink(world: World, attempt: AttemptId, sink: AttemptSink): AttemptSink {
  const speaks = (): void => world.observers.attemptSpoke(attempt)
  const ends = (how: AttemptEnd): void => world.observers.attemptEnded(attempt, how)
  return {
    accepted: (...said) => {
      speaks()
      sink.accepted(...said)
    },
    progressed: (...said) => sink.progressed(...said),
    paused: (...said) => sink.paused(...said),
    token: (...said) => {
      speaks()
      sink.token(...said)
    },
    finished: (...said) => {
      ends('finished')
      sink.finished(...said)
    },
    refused: (...said) => {
      ends('refused')
      sink.refused(...said)
    },
    lost: (...said) => {
      ends('lost')
      sink.lost(...said)
    },
  }
}
