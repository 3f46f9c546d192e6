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

const saying =
  (text: string, heard: ModelMessage[] = []): AskModel =>
  (messages) => {
    heard.push(...messages)
    return Promise.resolve({ kind: 'model-answered', text, model: 'tiny' })
  }
const nobody: AskModel = () =>
  Promise.resolve({ kind: 'model-missing', reason: 'No model is loaded.' })

test('askKnowledge() gives the model the findings and returns its cited answer', async () => {
  const heard: ModelMessage[] = []
  const answer = await askKnowledge(
    search,
    'how do I turn on RDMA?',
    saying('Boot into Recovery and run rdma_ctl enable (kb#413).', heard),
  )
  assert.equal(answer.kind, 'answered')
  assert.deepEqual(answer.kind === 'answered' && answer.cites, [413])
  assert.match(
    heard[1]?.content ?? '',
    /kb#413 \(corrected, confidence verified\): RDMA is switched on/,
  )
  assert.match(heard[1]?.content ?? '', /Question: how do I turn on RDMA\?/)
})

test('askKnowledge() takes out citations that were not retrieved and names them', async () => {
  const elsewhere = citationOf(433)
  const answer = await askKnowledge(
    search,
    'how do I turn on RDMA?',
    saying(`In Recovery (kb#413). Use KPOP (${elsewhere}).`),
  )
  assert.ok(answer.kind === 'answered')
  assert.equal(answer.answer, 'In Recovery (kb#413). Use KPOP.')
  assert.deepEqual(answer.removed, [433])
})

test('askKnowledge() shows the findings when no model is loaded', async () => {
  const answer = await askKnowledge(search, 'how do I turn on RDMA?', nobody)
  assert.ok(answer.kind === 'findings-shown')
  assert.equal(answer.reason, 'No model is loaded.')
  assert.ok(answer.findings.some((finding) => finding.id === 413))
})

test('askKnowledge() does not pass off an answer that cites nothing', async () => {
  const made = await askKnowledge(search, 'how do I turn on RDMA?', saying('Just press a button.'))
  assert.ok(made.kind === 'findings-shown')
  assert.match(made.reason, /rests on none of the findings, so it is not shown/)
  const honest = await askKnowledge(search, 'how do I turn on RDMA?', saying('I do not know.'))
  assert.ok(honest.kind === 'not-known')
  assert.match(honest.reason, /finds no answer/)
})

test('askKnowledge() does not pass off the babble of a small model', async () => {
  // What a model of 135 million parameters really answered.
  const babble = 'kb#413 (corrected, confidence high):\n\nkb#413 (stands, confidence high):\n\n'
  for (const text of [babble.repeat(10), 'kb#413', `Recovery is the way (kb#413).\n`.repeat(9)]) {
    const answer = await askKnowledge(search, 'how do I turn on RDMA?', saying(text))
    assert.ok(answer.kind === 'findings-shown', text.slice(0, 40))
    assert.match(answer.reason, /without saying anything/)
  }
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
