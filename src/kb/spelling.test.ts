import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { editDistance } from './spelling.ts'

test('editDistance() counts inserted, dropped, replaced and swapped letters', () => {
  const cases: [string, string, number][] = [
    ['cable', 'cable', 0],
    ['cabel', 'cable', 1],
    ['cabl', 'cable', 1],
    ['cables', 'cable', 1],
    ['table', 'cable', 1],
    ['thunderblot', 'thunderbolt', 1],
    ['', 'cable', 5],
    ['parralel', 'parallel', 2],
  ]
  for (const [from, to, edits] of cases)
    assert.equal(editDistance(from, to), edits, `${from} ${to}`)
})

test('editDistance() is symmetric and zero only for equal words', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
      assert.equal(editDistance(a, b), editDistance(b, a))
      assert.equal(editDistance(a, b) === 0, a === b)
    }),
  )
})
