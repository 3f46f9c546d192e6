import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type ChatEvent, readChatStream } from './chat-events.ts'

function read(text: string, cuts: readonly number[] = []): readonly ChatEvent[] {
  const events: ChatEvent[] = []
  const reader = readChatStream((event) => events.push(event))
  let from = 0
  for (const cut of [...cuts, text.length]) {
    reader.feed(text.slice(from, cut))
    from = cut
  }
  reader.end()
  return events
}

function chunk(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
}

const whole = [
  chunk({ role: 'assistant', content: '' }),
  ': keep-alive\n\n',
  chunk({ reasoning_content: 'Hm.', reasoning: 'Hm.' }),
  chunk({ content: 'Pa' }),
  chunk({ content: 'ris' }),
  chunk({}, 'stop'),
  'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\n',
  'data: [DONE]\n\n',
].join('')

const wholeEvents: readonly ChatEvent[] = [
  { kind: 'reasoning-received', text: 'Hm.' },
  { kind: 'text-received', text: 'Pa' },
  { kind: 'text-received', text: 'ris' },
  { kind: 'answer-finished', reason: 'stop' },
  { kind: 'usage-received', usage: { promptTokens: 9, completionTokens: 4 } },
]

test('readChatStream() reports thoughts, text, the finish and the usage in their order', () => {
  assert.deepEqual(read(whole), wholeEvents)
})

test('readChatStream() reports the same however the network cuts the stream', () => {
  const cuts = fc.array(fc.nat(whole.length), { maxLength: 20 })
  fc.assert(
    fc.property(cuts, (places) => {
      assert.deepEqual(
        read(
          whole,
          places.toSorted((a, b) => a - b),
        ),
        wholeEvents,
      )
    }),
  )
})

test('readChatStream() calls a stream that ends without a finish cut off', () => {
  assert.deepEqual(read(chunk({ content: 'Pa' })), [
    { kind: 'text-received', text: 'Pa' },
    { kind: 'answer-failed', failure: { kind: 'cut-off' } },
  ])
  assert.deepEqual(read(''), [{ kind: 'answer-failed', failure: { kind: 'cut-off' } }])
})

test('readChatStream() reports an error inside the stream once, and no text after it', () => {
  const error = 'data: {"error":{"message":"The rank died","code":"rank_lost"}}\n\n'
  assert.deepEqual(read(error + chunk({ content: 'late' }) + error), [
    {
      kind: 'answer-failed',
      failure: {
        kind: 'refused',
        status: null,
        code: 'rank_lost',
        message: 'The rank died',
        retryAfterSeconds: null,
      },
    },
  ])
})

test('readChatStream() fails on what is no JSON instead of throwing', () => {
  for (const data of ['<html>', '17', 'null', '{"choices":'])
    assert.deepEqual(read(`data: ${data}\n\n`).at(0), {
      kind: 'answer-failed',
      failure: { kind: 'unreadable' },
    })
})

test('readChatStream() gives up on an event without end', () => {
  const events: ChatEvent[] = []
  const reader = readChatStream((event) => events.push(event))
  for (let part = 0; part < 50; part++) reader.feed(`data: ${'x'.repeat(100_000)}\n`)
  reader.end()
  assert.deepEqual(events, [{ kind: 'answer-failed', failure: { kind: 'unreadable' } }])
})
