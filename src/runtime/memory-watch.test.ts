import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Clock } from '../ports/clock.ts'
import type { RankEvents, RankLauncher } from '../ports/rank-launcher.ts'
import type { LoadFrame } from '../wire/worker-frames.ts'
import { MemoryWatch } from './memory-watch.ts'

const GB = 1e9
let availableBytes = 0
let nowMs = 0
let timers: (() => void)[] = []
let said: (string | null)[] = []
let ranks: RankEvents[] = []

const clock = {
  nowMs: () => nowMs,
  every: (_ms: number, run: () => void) => {
    timers.push(run)
    return () => (timers = timers.filter((timer) => timer !== run))
  },
} as unknown as Clock

const launcher: RankLauncher = {
  launch: (_load, events) => {
    ranks.push(events)
    return { pid: ranks.length, send: () => undefined, signal: () => undefined }
  },
}

function pass(seconds: number): void {
  for (let second = 0; second < seconds; second++) {
    nowMs += 1000
    for (const timer of timers) timer()
  }
}

/** A rank that has used this much. */
function used(events: RankEvents | undefined, bytes: number): void {
  events?.frame({ kind: 'stats', activeBytes: bytes } as Parameters<RankEvents['frame']>[0])
}

let watch: MemoryWatch
const launch = (): RankEvents | undefined => {
  watch.launch({} as LoadFrame, { frame: () => undefined, exit: () => undefined })
  return ranks.at(-1)
}

beforeEach(() => {
  availableBytes = 100 * GB
  timers = []
  said = []
  ranks = []
  watch = new MemoryWatch(launcher, {
    clock,
    availableBytes: () => availableBytes,
    onHeld: (reason) => said.push(reason),
  })
})

test('MemoryWatch says nothing when the memory comes back within seconds', () => {
  const rank = launch()
  used(rank, 40 * GB)
  availableBytes = 60 * GB
  rank?.exit('killed')
  pass(5)
  availableBytes = 98 * GB
  pass(20)
  assert.deepEqual(said, [])
  assert.equal(timers.length, 0)
})

test('MemoryWatch names what is missing after the grace, and takes it back when it is there again', () => {
  const rank = launch()
  used(rank, 40 * GB)
  availableBytes = 60 * GB
  rank?.exit('killed')
  pass(9)
  assert.deepEqual(said, [])
  pass(3)
  assert.match(said[0] ?? '', /^40(\.0)? GB of memory did not come back/)
  pass(60)
  assert.equal(said.length, 1)
  availableBytes = 95 * GB
  pass(2)
  assert.deepEqual(said.slice(1), [null])
})

test('MemoryWatch waits until the last rank has gone, and counts what all of them used', () => {
  const first = launch()
  availableBytes = 80 * GB
  const second = launch()
  used(first, 20 * GB)
  used(second, 20 * GB)
  availableBytes = 60 * GB
  first?.exit('killed')
  pass(30)
  assert.deepEqual(said, [], 'the other one still works')
  second?.exit('killed')
  // 15 GB less than before, of 40 GB used: a browser may have been opened.
  availableBytes = 85 * GB
  pass(30)
  assert.deepEqual(said, [])
})

test('MemoryWatch keeps the first measure when a rank is restarted before the memory is back', () => {
  const rank = launch()
  used(rank, 40 * GB)
  availableBytes = 60 * GB
  rank?.exit('crashed')
  pass(1)
  const again = launch()
  used(again, 40 * GB)
  availableBytes = 20 * GB
  again?.exit('crashed')
  pass(12)
  assert.match(said[0] ?? '', /^80(\.0)? GB/)
})
