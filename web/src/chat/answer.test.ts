import assert from 'node:assert/strict'
import { test } from 'node:test'
import { announcementOf } from './announce.ts'
import { type Answer, advanceAnswer, newAnswer, stopAnswer } from './answer.ts'

const fresh = newAnswer({ model: 'm', includesLoad: true })
const say = (answer: Answer, text: string, atMs: number): Answer =>
  advanceAnswer(answer, { kind: 'text-received', text }, atMs)

test('advanceAnswer() joins text and remembers when it began and went on', () => {
  const answer = say(say(fresh, 'Pa', 100), 'ris', 130)
  assert.equal(answer.text, 'Paris')
  assert.equal(answer.status, 'streaming')
  assert.deepEqual([answer.firstTokenMs, answer.lastTokenMs, answer.pieces], [100, 130, 2])
})

test('advanceAnswer() changes nothing but the usage once an answer has ended', () => {
  const done = advanceAnswer(
    say(fresh, 'Paris', 100),
    { kind: 'answer-finished', reason: 'stop' },
    150,
  )
  assert.equal(say(done, '!', 200), done)
  assert.equal(stopAnswer(done, 200), done)
  const usage = { promptTokens: 1, completionTokens: 2 }
  assert.deepEqual(advanceAnswer(done, { kind: 'usage-received', usage }, 200), { ...done, usage })
})

test('advanceAnswer() keeps the text of an answer that fails', () => {
  const failed = advanceAnswer(
    say(fresh, 'Pa', 100),
    { kind: 'answer-failed', failure: { kind: 'cut-off' } },
    150,
  )
  assert.deepEqual([failed.status, failed.text, failed.endedMs], ['failed', 'Pa', 150])
})

test('announcementOf() stays the same while an answer grows, so that no token is read out', () => {
  const said = new Set([fresh, say(fresh, 'Pa', 1), say(fresh, 'Paris', 2)].map(announcementOf))
  assert.equal(said.size, 1)
})

test('announcementOf() reads a short answer, and only the size of a long one', () => {
  const done = (text: string): Answer => ({ ...fresh, status: 'done', text })
  assert.equal(announcementOf(done('Paris.')), 'Answer: Paris.')
  assert.equal(announcementOf(done('word '.repeat(500))), 'The answer is complete: 500 words.')
})

test('announcementOf() says what to do when an answer failed', () => {
  const failed: Answer = { ...fresh, status: 'failed', failure: { kind: 'unreachable' } }
  assert.match(announcementOf(failed), /does not answer.*bushel up/)
})
