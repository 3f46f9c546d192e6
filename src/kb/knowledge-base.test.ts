import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openKnowledgeBase } from './open.ts'

const kb = await openKnowledgeBase({
  dataDir: join(import.meta.dirname, '../../data/kb'),
  cacheDir: null,
})
after(() => kb.close())

test('detail() shows relations in both directions', () => {
  const detail = kb.detail(2034)
  assert.deepEqual(
    detail?.relations.contradicts.map((other) => other.id),
    [329, 416],
  )
  assert.deepEqual(
    kb.detail(416)?.relatedBy.contradicts.map((other) => other.id),
    [2034],
  )
  assert.deepEqual(
    kb.detail(372)?.relatedBy.supersedes.map((other) => other.id),
    [2079],
  )
})

test('detail() names the conflicts a finding takes part in and the topics that show it', () => {
  const detail = kb.detail(329)
  assert.ok(detail?.conflicts.some((conflict) => conflict.name === 'fast-synch'))
  assert.ok(detail?.topics.includes('jaccl') && detail.topics.includes('gpu-distributed'))
})

test('detail() and finding() know no finding under a strange number', () => {
  for (const id of [0, -1, 1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60])
    assert.equal(kb.detail(id), null, String(id))
})

test('topic() gives the findings with its tags, and the whole subject gives all', () => {
  const exo = kb.topic('exo')
  assert.ok(exo !== null && exo.findings.length > 10)
  assert.ok(exo.findings.every((finding) => finding.tags.includes('exo')))
  assert.equal(kb.topic('gpu-distributed')?.findings.length, kb.findings().length)
  assert.equal(kb.topic('no-such-topic'), null)
})

test('stats() counts what is there', () => {
  const stats = kb.stats()
  const sum = (counts: Readonly<Record<string, number>>): number =>
    Object.values(counts).reduce((total, count) => total + count, 0)
  assert.equal(stats.findings, kb.findings().length)
  assert.equal(sum(stats.byStatus), stats.findings)
  assert.equal(sum(stats.byConfidence), stats.findings)
  assert.equal(stats.index, null)
  assert.match(stats.digest, /^[0-9a-f]{64}$/)
})
