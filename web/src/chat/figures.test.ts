import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChatEvent } from '../api/chat-events.ts'
import { type Answer, advanceAnswer, newAnswer, stopAnswer } from './answer.ts'
import { figuresOf, formatDuration, formatRate, formatTokens, reasoningMs } from './figures.ts'

function answerOf(events: readonly (readonly [number, ChatEvent])[]): Answer {
  return events.reduce<Answer>(
    (answer, [elapsedMs, event]) => advanceAnswer(answer, event, elapsedMs),
    newAnswer({ model: 'm', includesLoad: false }),
  )
}

const text = { kind: 'text-received', text: 'x' } as const
const thought = { kind: 'reasoning-received', text: 'y' } as const
const finished = { kind: 'answer-finished', reason: 'stop' } as const
const usage = (completionTokens: number): ChatEvent => ({
  kind: 'usage-received',
  usage: { promptTokens: 3, completionTokens },
})

test('figuresOf() measures from the first token to the end, with the count of the server', () => {
  const answer = answerOf([
    [400, text],
    [900, text],
    [1400, finished],
    [1401, usage(11)],
  ])
  assert.deepEqual(figuresOf(answer), {
    firstTokenMs: 400,
    tokens: { value: 11, isLowerBound: false },
    tokensPerSecond: { value: 10, isLowerBound: false },
  })
})

test('figuresOf() calls what it counted itself a lower bound', () => {
  const running = answerOf([
    [400, text],
    [500, text],
    [600, text],
  ])
  const stopped = stopAnswer(running, 5000)
  assert.deepEqual(figuresOf(stopped), {
    firstTokenMs: 400,
    tokens: { value: 3, isLowerBound: true },
    tokensPerSecond: { value: 10, isLowerBound: true },
  })
})

test('figuresOf() shows no rate for a single token, a moment, or nothing', () => {
  const single = answerOf([
    [400, text],
    [900, finished],
    [900, usage(1)],
  ])
  assert.equal(figuresOf(single).tokensPerSecond, null)
  const moment = answerOf([
    [400, text],
    [410, finished],
    [410, usage(50)],
  ])
  assert.equal(figuresOf(moment).tokensPerSecond, null)
  assert.deepEqual(figuresOf(newAnswer({ model: 'm', includesLoad: false })), {
    firstTokenMs: null,
    tokens: null,
    tokensPerSecond: null,
  })
})

test('figuresOf() takes a thought for a first token, as a thought is made of tokens', () => {
  const answer = answerOf([
    [250, thought],
    [900, text],
  ])
  assert.equal(figuresOf(answer).firstTokenMs, 250)
  assert.equal(reasoningMs(answer), 650)
})

test('reasoningMs() is null while the model still thinks and when it never did', () => {
  assert.equal(reasoningMs(answerOf([[250, thought]])), null)
  assert.equal(reasoningMs(answerOf([[250, text]])), null)
})

test('formatDuration() reads well at every size', () => {
  const written = [0, 999.4, 1000, 9940, 9960, 59_400, 64_000].map((ms) => formatDuration(ms))
  assert.deepEqual(written, ['0 ms', '999 ms', '1.0 s', '9.9 s', '10 s', '59 s', '1 min 4 s'])
})

test('formatRate() and formatTokens() say "at least" when that is all that is known', () => {
  assert.equal(formatRate({ value: 7.25, isLowerBound: false }), '7.3 tok/s')
  assert.equal(formatRate({ value: 41.7, isLowerBound: true }), '≥ 42 tok/s')
  assert.equal(formatTokens({ value: 1, isLowerBound: false }), '1 token')
  assert.equal(formatTokens({ value: 5, isLowerBound: true }), '≥ 5 tokens')
})
