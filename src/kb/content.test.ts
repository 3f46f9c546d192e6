// The content itself: what was promised to be in the knowledge base is in it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { citedIds } from './citations.ts'
import { parseKnowledge } from './parse-files.ts'
import { readKnowledgeFiles } from './read-files.ts'

const knowledge = parseKnowledge(
  readKnowledgeFiles(join(import.meta.dirname, '../../data/kb')).files,
)
const ids = new Set(knowledge.findings.map((finding) => finding.id))

const firstCollection = [
  58, 59, 67, 303, 306, 309, 313, 316, 322, 324, 329, 333, 337, 341, 346, 350, 354, 359, 363, 366,
  369, 372, 377, 380, 412, 413, 414, 415, 416, 417, 418, 419, 420, 421, 422, 423, 424, 425, 426,
  427, 428, 429, 430, 431, 432, 433, 434, 435, 436, 437, 549,
]

test('the knowledge base keeps all 51 findings of the first collection under their ids', () => {
  assert.equal(firstCollection.length, 51)
  assert.deepEqual(
    firstCollection.filter((id) => !ids.has(id)),
    [],
  )
  assert.deepEqual(
    [...ids].filter((id) => id < 1000).sort((a, b) => a - b),
    firstCollection,
  )
})

test('the knowledge base has at least 60 findings of its own and the claims of articles', () => {
  assert.ok([...ids].filter((id) => id >= 2000).length >= 60)
  assert.ok([...ids].filter((id) => id >= 1000 && id < 2000).length >= 30)
})

test('claims of the article about an invented system never pass for more than hypothetical', () => {
  const article = knowledge.findings.filter((finding) =>
    finding.sources.some((source) => source.includes('article on macOS 17.2')),
  )
  assert.ok(article.length >= 10)
  for (const finding of article)
    assert.ok(
      finding.confidence === 'hypothetical' || finding.status === 'corrected',
      `finding ${finding.id} is ${finding.confidence} and ${finding.status}`,
    )
})

test('every conflict that the planner must know is settled', () => {
  const settled = new Map(knowledge.conflicts.map((conflict) => [conflict.name, conflict]))
  const expected: Record<string, RegExp> = {
    'rdma-latency': /28 µs/,
    'thunderbolt-rate': /80 Gb\/s/,
    'nvlink-units': /1800 GB\/s/,
    'kimi-k2-four-machines': /28\.3/,
    'llama-on-two-machines': /Kimi K2/,
    'deepseek-v31-speed': /32\.5/,
    'second-machine-adds-a-third': /fixed work per layer/,
    'largest-cluster': /five have run/,
    'enabling-rdma': /Settings/,
    'exchanges-per-token': /160 times per token/,
    'macos-17-2': /Discard/,
    'zero-copy': /at the level of MLX no/,
  }
  for (const [name, use] of Object.entries(expected)) {
    const conflict = settled.get(name)
    assert.match(conflict?.use ?? `no conflict ${name}`, use)
    assert.ok((conflict?.reason.length ?? 0) > 40, `${name} gives no reason`)
  }
})

test('a finding on the losing side of a conflict is marked so', () => {
  const byId = new Map(knowledge.findings.map((finding) => [finding.id, finding]))
  for (const conflict of knowledge.conflicts)
    assert.ok(
      [...conflict.claims, ...conflict.stands.map((id) => ({ id }))].some(
        ({ id }) => byId.get(id)?.status !== 'stands',
      ),
      `${conflict.name} marks nobody as corrected, outdated or disputed`,
    )
})

test('every asked topic is there, and each has figures, pitfalls and questions', () => {
  const names = knowledge.topics.map((topic) => topic.name)
  for (const name of [
    'gpu-distributed',
    'rdma-thunderbolt',
    'jaccl',
    'mlx-distributed',
    'parallelism',
    'exo',
    'dnet',
    'training',
    'monitoring',
    'cost-and-power',
    'security',
    'general-compute',
  ])
    assert.ok(names.includes(name), `topic ${name} is missing`)
  for (const topic of knowledge.topics) {
    assert.ok(topic.know.length > 200, `${topic.name} says too little`)
    assert.ok(topic.figures.length > 0 && topic.pitfalls.length > 2, topic.name)
    assert.ok(topic.questions.length >= 3, topic.name)
  }
})

test('the digest of the whole subject cites every finding of the first collection', () => {
  const whole = knowledge.topics.find((topic) => topic.name === 'gpu-distributed')
  const cited = new Set(citedIds(JSON.stringify(whole)))
  assert.deepEqual(
    firstCollection.filter((id) => !cited.has(id)),
    [],
  )
})
