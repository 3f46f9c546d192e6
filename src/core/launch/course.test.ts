import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { beginCourse, causeOf, exitCode, hasEnded, rankEnded } from './course.ts'

const well = { kind: 'exited', code: 0, signal: 0 } as const

test('rankEnded() lets the others finish while ranks end well', () => {
  const first = rankEnded(beginCourse(['a', 'b']), 0, well)
  assert.deepEqual(first.stop, [])
  assert.equal(hasEnded(first.course), false)
  const { course } = rankEnded(first.course, 1, well)
  assert.equal(hasEnded(course), true)
  assert.equal(exitCode(course), 0)
})

test('rankEnded() stops all that still run at the first failure, and its code is the launch’s', () => {
  const begun = rankEnded(beginCourse(['a', 'b', 'c']), 1, well).course
  const { course, stop } = rankEnded(begun, 2, { kind: 'exited', code: 3, signal: 0 })
  assert.deepEqual(stop, [0])
  const ended = rankEnded(course, 0, { kind: 'exited', code: 0, signal: 15 }).course
  assert.equal(exitCode(ended), 3)
  assert.equal(causeOf(ended), 'rank 2 on c ended with exit code 3')
})

test('exitCode() counts signals as a shell does, and a lost machine as 1', () => {
  const killed = rankEnded(beginCourse(['a']), 0, { kind: 'exited', code: 0, signal: 9 }).course
  assert.equal(exitCode(killed), 137)
  assert.equal(causeOf(killed), 'rank 0 on a was ended by SIGKILL')
  const lost = rankEnded(beginCourse(['a']), 0, { kind: 'lost', reason: 'it is silent' }).course
  assert.equal(exitCode(lost), 1)
  assert.equal(causeOf(lost), 'rank 0 on a was lost: it is silent')
})

test('rankEnded() tells to stop at most once, and never a rank that has ended', () => {
  const end = fc.oneof(
    fc.constant(well),
    fc.record({
      kind: fc.constant('exited' as const),
      code: fc.nat(255),
      signal: fc.constantFrom(0, 9, 11, 15),
    }),
    fc.constant({ kind: 'lost', reason: 'gone' } as const),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), end), { maxLength: 12 }), (ends) => {
      let course = beginCourse(['a', 'b', 'c', 'd'])
      let stops = 0
      for (const [rank, one] of ends) {
        const before = course
        const step = rankEnded(course, rank, one)
        course = step.course
        if (step.stop.length > 0) stops += 1
        for (const other of step.stop) assert.ok(before.ends[other] === null && other !== rank)
      }
      assert.ok(stops <= 1)
      assert.equal(exitCode(course) === 0, course.firstFailure === null)
    }),
  )
})
