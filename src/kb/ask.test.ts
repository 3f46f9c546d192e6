import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readQuestions } from '../../bench/kb/measure.ts'
import { type AskModel, type ModelMessage, askKnowledge } from './ask.ts'
import { citationOf } from './citations.ts'
import { openKnowledgeBase } from './open.ts'

const root = join(import.meta.dirname, '../..')
const kb = await openKnowledgeBase({ dataDir: join(root, 'data/kb'), cacheDir: null })
after(() => kb.close())
const search = (question: string): ReturnType<typeof kb.search> => kb.search(question)

interface Heard {
  readonly messages: ModelMessage[]
  readonly schemas: unknown[]
}

/** A model that replies with this text, whatever the form asked for. */
const replying =
  (text: string, heard: Heard = { messages: [], schemas: [] }): AskModel =>
  (messages, schema) => {
    heard.messages.push(...messages)
    heard.schemas.push(schema)
    return Promise.resolve({ kind: 'model-answered', text, model: 'tiny' })
  }
const saying = (
  statements: readonly (readonly [number, string])[],
  options: { known?: boolean; heard?: Heard } = {},
): AskModel =>
  replying(
    JSON.stringify({
      known: options.known ?? true,
      statements: statements.map(([finding, text]) => ({ finding, text })),
    }),
    options.heard,
  )
const nobody: AskModel = () =>
  Promise.resolve({ kind: 'model-missing', reason: 'No model is loaded.' })

const switchOn = 'how do I turn on RDMA?'

test('askKnowledge() gives the model the findings and returns its cited answer', async () => {
  const heard: Heard = { messages: [], schemas: [] }
  const answer = await askKnowledge(
    search,
    switchOn,
    saying([[413, 'Boot into Recovery and run rdma_ctl enable.']], { heard }),
  )
  assert.ok(answer.kind === 'answered')
  assert.equal(answer.answer, 'Boot into Recovery and run rdma_ctl enable (kb#413).')
  assert.deepEqual(answer.cites, [413])
  const asked = heard.messages[1]?.content ?? ''
  assert.match(asked, /kb#413 \(corrected, confidence verified\): RDMA is switched on/)
  assert.match(asked, /Question: how do I turn on RDMA\?/)
})

test('askKnowledge() holds the model to a form in which only retrieved ids exist', async () => {
  const heard: Heard = { messages: [], schemas: [] }
  const answer = await askKnowledge(search, switchOn, saying([], { heard }))
  const ids = answer.findings.map(({ id }) => id)
  assert.ok(ids.length > 1)
  assert.ok(JSON.stringify(heard.schemas[0]).includes(`"enum":${JSON.stringify(ids)}`))
})

test('askKnowledge() takes out citations that were not retrieved and names them', async () => {
  const elsewhere = citationOf(433)
  const answer = await askKnowledge(
    search,
    switchOn,
    saying([
      [413, `RDMA is switched on in Recovery (${elsewhere}).`],
      [433, 'Use KPOP to switch RDMA on in Recovery.'],
    ]),
  )
  assert.ok(answer.kind === 'answered')
  assert.equal(answer.answer, 'RDMA is switched on in Recovery (kb#413).')
  assert.deepEqual(answer.removed, [433])
})

test('askKnowledge() leaves out what repeats itself, strays, or names figures that no finding has', async () => {
  const good = [413, 'RDMA is switched on in Recovery with rdma_ctl enable.'] as const
  const answer = await askKnowledge(
    search,
    switchOn,
    saying([
      good,
      good,
      [413, 'Recovery takes 17 minutes and then RDMA is switched on.'],
      [413, 'Bread rises overnight while bakers sleep beside warm ovens.'],
    ]),
  )
  assert.ok(answer.kind === 'answered')
  assert.equal(answer.answer, 'RDMA is switched on in Recovery with rdma_ctl enable (kb#413).')
  assert.deepEqual(answer.dropped, ['repeats itself', 'names figures of its own', 'strays'])
})

test('askKnowledge() shows the findings when no model is loaded', async () => {
  const answer = await askKnowledge(search, 'how do I turn on RDMA?', nobody)
  assert.ok(answer.kind === 'findings-shown')
  assert.equal(answer.reason, 'No model is loaded.')
  assert.ok(answer.findings.some((finding) => finding.id === 413))
})

test('askKnowledge() shows the findings when nothing of an answer can stand, and says why', async () => {
  const loop = 'RDMA is switched on and RDMA is switched on and RDMA is switched on and'
  const cases: readonly (readonly [AskModel, RegExp])[] = [
    [saying([[413, loop]]), /^The answer of tiny repeats itself, so it is not shown/],
    [saying([[413, 'RDMA']]), /says nothing/],
    [saying([[413, 'how do I turn on RDMA']]), /says nothing/],
    [saying([[433, 'In Recovery, with rdma_ctl enable.']]), /cites nothing that it was given/],
    [saying([]), /said nothing about these findings/],
    [replying('{"known": true, "statements": [{"finding": 413, "te'), /did not finish its answer/],
    [replying('Just press a button.'), /did not finish its answer/],
  ]
  for (const [model, reason] of cases) {
    const answer = await askKnowledge(search, switchOn, model)
    assert.ok(answer.kind === 'findings-shown', String(reason))
    assert.match(answer.reason, reason)
    assert.ok(answer.findings.length > 1)
  }
})

test('askKnowledge() believes a model that does not know', async () => {
  const honest = await askKnowledge(search, switchOn, saying([], { known: false }))
  assert.ok(honest.kind === 'not-known')
  assert.match(honest.reason, /finds no answer/)
})

test('askKnowledge() says that it does not know, and asks no model, when the subject is another', async () => {
  const never: AskModel = () => assert.fail('the model was asked')
  const strange = [
    'how do I bake bread',
    'what is the capital of France',
    'who won the world cup in 2018',
    'best pizza in naples',
    'how tall is mount everest',
    'write me a poem about spring',
    'how do I train a dog',
    'what is the weather tomorrow',
    'python list comprehension syntax',
    'recipe for apple pie',
    'is my car insurance valid abroad',
    'what time is it',
    'how to fix a flat bicycle tire',
    'how do I install windows 11',
    'price of bitcoin',
    '🚀🚀🚀',
    '',
  ]
  for (const question of strange)
    assert.equal((await askKnowledge(search, question, never)).kind, 'not-known', question)
})

test('askKnowledge() tries to answer nearly every question that the findings do answer', async () => {
  const questions = readQuestions(join(root, 'bench/kb/questions.toml'))
  const answers = await Promise.all(questions.map(({ ask }) => askKnowledge(search, ask, nobody)))
  const refused = answers.filter((answer) => answer.kind === 'not-known')
  assert.ok(refused.length <= questions.length * 0.05, `${refused.length} of ${questions.length}`)
})
