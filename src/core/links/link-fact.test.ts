import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aMeasure } from '../../../test/support/link-facts.ts'
import { linkFact, mergeLinkFacts } from './link-fact.ts'

const a = { machine: 'anna', interface: 'en1' }
const b = { machine: 'ben', interface: 'en4' }

test('linkFact() tells a link alike from both of its ends', () => {
  const seenByBen = aMeasure({
    gbps: { slower: 1, forward: 1, backward: 8 },
    likelyCause: 'only one direction is slow (forward)',
  })
  const { ends, measured } = linkFact(b, a, seenByBen)
  assert.deepEqual(ends, [a, b])
  assert.deepEqual(measured?.gbps, { slower: 1, forward: 8, backward: 1 })
  assert.equal(measured?.likelyCause, 'only one direction is slow (backward)')
  const seenByAnna = linkFact(a, b, measured)
  assert.deepEqual(seenByAnna, { ends, measured })
})

test('mergeLinkFacts() keeps each link once, as it was measured last', () => {
  const old = linkFact(a, b, aMeasure({ ageMs: 60_000 }))
  const fresh = linkFact(b, a, aMeasure({ ageMs: 2000 }))
  const never = linkFact(a, b, null)
  const other = linkFact({ ...a, interface: 'en2' }, b, null)
  assert.deepEqual(mergeLinkFacts([old, never, fresh, other]), [fresh, other])
  assert.deepEqual(mergeLinkFacts([fresh, old, never]), [fresh])
  assert.deepEqual(mergeLinkFacts([never, old]), [old])
})
