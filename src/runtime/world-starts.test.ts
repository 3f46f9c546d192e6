import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RankEvents, RankLauncher } from '../ports/rank-launcher.ts'
import type { FrameFromWorker, LoadFrame } from '../wire/worker-frames.ts'
import { WorldStarts } from './world-starts.ts'

/** How often a start counted as failed when the rank lives like this. */
function failedStarts(backend: string, live: (rank: RankEvents) => void): number {
  let failed = 0
  let heard: RankEvents | undefined
  const inner: RankLauncher = {
    launch: (_load, events) => {
      heard = events
      return { pid: 1, send: () => undefined, signal: () => undefined }
    },
  }
  let exits = 0
  const starts = new WorldStarts(inner, () => (failed += 1))
  starts.launch({ world: { backend } } as LoadFrame, {
    frame: () => undefined,
    exit: () => (exits += 1),
  })
  assert.ok(heard !== undefined)
  live(heard)
  assert.equal(exits, 1, 'the supervisor hears of the end as well')
  return failed
}

test('WorldStarts counts a JACCL world that ends by itself before it is ready, and nothing else', () => {
  const ready = { kind: 'ready' } as FrameFromWorker
  const dies = (rank: RankEvents): void => rank.exit('exit code 1', true)
  assert.equal(failedStarts('jaccl', dies), 1)
  assert.equal(failedStarts('ring', dies), 0)
  assert.equal(
    failedStarts('jaccl', (rank) => {
      rank.frame(ready)
      rank.exit('exit code 1', true)
    }),
    0,
  )
  assert.equal(
    failedStarts('jaccl', (rank) => rank.exit('it was told to stop', false)),
    0,
  )
})
