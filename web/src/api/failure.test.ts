import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainFailure, isKeyMissing, refusalOf } from './failure.ts'

const busy = { error: { message: 'All rows are taken', code: 'overloaded' } }

test('refusalOf() reads the message, the code and the time to wait', () => {
  assert.deepEqual(refusalOf(busy, { status: 429, retryAfter: '2' }), {
    kind: 'refused',
    status: 429,
    code: 'overloaded',
    message: 'All rows are taken',
    retryAfterSeconds: 2,
  })
})

test('refusalOf() calls a body without an error object unreadable', () => {
  for (const body of [null, 'Bad gateway', {}, { error: 'text' }, { error: { message: 5 } }])
    assert.deepEqual(refusalOf(body, { status: 502, retryAfter: null }), { kind: 'unreadable' })
})

test('refusalOf() ignores a time to wait that is no number', () => {
  const failure = refusalOf(busy, { status: 429, retryAfter: 'Wed, 21 Oct 2026 07:28:00 GMT' })
  assert.equal(failure.kind === 'refused' && failure.retryAfterSeconds, null)
})

test('explainFailure() says how long to wait when the server did', () => {
  const failure = refusalOf(busy, { status: 429, retryAfter: '2' })
  assert.match(explainFailure(failure).advice, /in 2 s/)
  assert.equal(explainFailure(failure).detail, 'All rows are taken')
})

test('explainFailure() always has a title, a detail and something to do', () => {
  const refusals = [400, 401, 403, 404, 409, 429, 500, 503].map((status) =>
    refusalOf(busy, { status, retryAfter: null }),
  )
  const kinds = ['unreachable', 'cut-off', 'unreadable'] as const
  for (const failure of [...refusals, ...kinds.map((kind) => ({ kind }))]) {
    const { title, detail, advice } = explainFailure(failure)
    for (const text of [title, detail, advice]) assert.notEqual(text, '')
  }
})

test('explainFailure() knows what to do about a conversation that is too long', () => {
  const body = { error: { message: '9000 tokens', code: 'context_length_exceeded' } }
  assert.match(
    explainFailure(refusalOf(body, { status: 400, retryAfter: null })).advice,
    /new chat/,
  )
})

test('isKeyMissing() holds for 401 alone', () => {
  assert.equal(isKeyMissing(refusalOf(busy, { status: 401, retryAfter: null })), true)
  assert.equal(isKeyMissing(refusalOf(busy, { status: 403, retryAfter: null })), false)
  assert.equal(isKeyMissing({ kind: 'unreachable' }), false)
})
