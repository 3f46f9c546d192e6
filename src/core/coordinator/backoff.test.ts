import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../limits.ts'
import { holdOffAfter } from './backoff.ts'

test('holdOffAfter() waits longer after each refusal in a row, and no longer than is said', () => {
  let held = holdOffAfter(undefined, 0)
  const waits = [held.untilMs]
  for (let refusal = 0; refusal < 5; refusal++) {
    const nowMs = held.untilMs + 250
    held = holdOffAfter(held, nowMs)
    waits.push(held.untilMs - nowMs)
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 8000, 8000])
  const later = held.untilMs + limits.refusedInRowMs
  assert.equal(holdOffAfter(held, later).untilMs - later, 1000)
})

test('holdOffAfter() takes replicas that are refused together for one refusal', () => {
  const first = holdOffAfter(undefined, 0)
  assert.deepEqual(holdOffAfter(first, 400), { untilMs: 1400, refusals: 1 })
})
