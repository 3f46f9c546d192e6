import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { checkCitations } from './check-citations.ts'
import { citationOf, citedIds } from './citations.ts'

const allowed = new Set([306, 413])

test('checkCitations() keeps what was retrieved, in whatever way the model writes it', () => {
  for (const written of [
    'kb#306',
    'KB #306',
    '[306]',
    '[#306]',
    '#306',
    'finding 306',
    'Finding #306',
  ]) {
    const { text, cites, removed } = checkCitations(`It is fast (${written}).`, allowed)
    assert.deepEqual(cites, [306], written)
    assert.deepEqual(removed, [], written)
    assert.deepEqual(citedIds(text), [306], written)
  }
})

test('checkCitations() takes invented ids out and closes the hole', () => {
  const made = citationOf(99_999)
  assert.deepEqual(checkCitations(`Fast (kb#306, ${made}). Cheap (${made}).`, allowed), {
    text: 'Fast (kb#306). Cheap.',
    cites: [306],
    removed: [99_999],
  })
  assert.equal(checkCitations(`Fast [${made} and kb#413].`, allowed).text, 'Fast [kb#413].')
})

test('checkCitations() leaves numbers alone that are not citations', () => {
  const text = 'mlx#3467 on 4 Macs in [0, 1], 80 Gb/s, exo-explore/exo#1551.'
  assert.deepEqual(checkCitations(text, allowed), { text, cites: [], removed: [] })
})

test('checkCitations() never lets an id through that was not retrieved', () => {
  const piece = fc.oneof(
    fc.integer({ min: 1, max: 3000 }).map((id) => citationOf(id)),
    fc.integer({ min: 10, max: 3000 }).map((id) => `[${id}]`),
    fc.string({ maxLength: 8 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const { text, cites } = checkCitations(pieces.join(' '), allowed)
      for (const id of [...cites, ...citedIds(text)]) assert.ok(allowed.has(id), `${id} in ${text}`)
    }),
  )
})
