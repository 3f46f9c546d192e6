import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptId, groupId } from '../core/ids.ts'
import type { PromptRead } from '../core/plan/score/first-token.ts'
import { type AttemptSink, LocalAttempts } from './attempts.ts'

const group = groupId('g1')
const [a, b] = [attemptId('gen-1.1'), attemptId('gen-2.1')]
const nobody: AttemptSink = {
  accepted: () => undefined,
  progressed: () => undefined,
  paused: () => undefined,
  token: () => undefined,
  finished: () => undefined,
  refused: () => undefined,
  lost: () => undefined,
}

function reader() {
  const clock = { nowMs: 0 }
  const reads: PromptRead[] = []
  const attempts = new LocalAttempts(
    () => ({ send: () => undefined }),
    () => clock.nowMs,
  )
  attempts.watchReads((_, read) => reads.push(read))
  const submit = (attempt: typeof a, replay: readonly number[] = []): void =>
    attempts.submit({ attempt, group, question: {} as never, replay }, nobody)
  const accept = (attempt: typeof a): void =>
    void attempts.take({ kind: 'accepted', attempt, promptTokens: 600, cachedTokens: 88 })
  const token = (attempt: typeof a, position: number): void =>
    void attempts.take({
      kind: 'step',
      step: position,
      rows: [{ attempt, position, token: 7, parts: [] }],
    })
  return { clock, reads, submit, accept, token }
}

test('LocalAttempts tells how long a prompt took that was read alone, once, what was kept left out', () => {
  const { clock, reads, submit, accept, token } = reader()
  submit(a)
  accept(a)
  clock.nowMs = 1500
  token(a, 0)
  clock.nowMs = 1600
  token(a, 1)
  assert.deepEqual(reads, [{ tokens: 512, seconds: 1.5 }])
})

test('LocalAttempts tells nothing of prompts that were read in company, or after tokens already sent', () => {
  const { reads, submit, accept, token } = reader()
  submit(a)
  accept(a)
  submit(b)
  accept(b)
  token(a, 0)
  token(b, 0)
  assert.deepEqual(reads, [])
  const resumed = reader()
  resumed.submit(a, [1, 2])
  resumed.accept(a)
  resumed.token(a, 2)
  assert.deepEqual(resumed.reads, [])
})
