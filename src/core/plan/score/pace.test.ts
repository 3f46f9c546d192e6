import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Pace, type PaceSample, noPace, paceOf, takeSample } from './pace.ts'

const feed = (figures: readonly (readonly [number, number])[]): Pace =>
  figures.reduce(
    (pace, [tokensPerSecond, queue], index) =>
      takeSample(pace, { atMs: index * 2000, tokensPerSecond, queue } satisfies PaceSample),
    noPace,
  )

test('paceOf() leaves out the first and the last figure of every lone request', () => {
  const pace = feed([
    [3, 1],
    [20, 1],
    [21, 1],
    [22, 1],
    [5, 1],
    [0, 0],
  ])
  assert.deepEqual(
    pace.steady.map((one) => one.tokensPerSecond),
    [20, 21, 22],
  )
  assert.equal(paceOf(pace), 21)
})

test('paceOf() counts nothing while several requests run, and says nothing from too little', () => {
  const busy = feed([
    [40, 2],
    [41, 2],
    [42, 2],
    [43, 2],
    [44, 2],
  ])
  assert.deepEqual(busy.steady, [])
  assert.equal(
    paceOf(
      feed([
        [20, 1],
        [20, 1],
        [20, 1],
        [20, 1],
      ]),
    ),
    null,
  )
})
