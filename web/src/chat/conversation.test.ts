import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newAnswer } from './answer.ts'
import { chooseModel } from './choose-model.ts'
import { type Turn, messagesFor, titleOf } from './conversation.ts'

function turn(question: string, text: string): Turn {
  return {
    id: question,
    question,
    answer: { ...newAnswer({ model: 'm', includesLoad: false }), text },
  }
}

test('messagesFor() tells the model what was answered and leaves out what was not', () => {
  assert.deepEqual(messagesFor([turn('a', 'A'), turn('b', ' \n'), turn('c', 'C')], 'd'), [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'A' },
    { role: 'user', content: 'c' },
    { role: 'assistant', content: 'C' },
    { role: 'user', content: 'd' },
  ])
})

test('titleOf() is the first line of the first question, shortened between whole letters', () => {
  const titled = (question: string): string =>
    titleOf({ id: 'x', askedMs: 0, turns: [turn(question, '')] })
  assert.equal(titled('  Hello there \nsecond line'), 'Hello there')
  assert.equal(titled('🍎'.repeat(80)), `${'🍎'.repeat(59)}…`)
  assert.equal(titleOf({ id: 'x', askedMs: 0, turns: [] }), 'New chat')
})

test('chooseModel() takes the first wish that exists, then what is loaded, then anything', () => {
  const models = [
    { id: 'a', loaded: false, contextTokens: null },
    { id: 'b', loaded: true, contextTokens: null },
  ]
  assert.equal(chooseModel({ models, wishes: [null, 'gone', 'a'] }), 'a')
  assert.equal(chooseModel({ models, wishes: ['gone'] }), 'b')
  assert.equal(chooseModel({ models: models.slice(0, 1), wishes: [] }), 'a')
  assert.equal(chooseModel({ models: [], wishes: ['a'] }), null)
})
