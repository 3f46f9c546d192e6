// Graph shapes against brute force on random graphs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  type CableCounts,
  findRing,
  isMesh,
  maximalCliques,
  missingPairs,
  ringWidth,
} from './shapes.ts'

const graphs = fc
  .integer({ min: 2, max: 6 })
  .chain((size) =>
    fc
      .array(fc.constantFrom(0, 0, 1, 2), { minLength: size * size, maxLength: size * size })
      .map((cells): CableCounts =>
        Array.from({ length: size }, (_, a) =>
          Array.from({ length: size }, (__, b) =>
            a === b ? 0 : (cells[Math.min(a, b) * size + Math.max(a, b)] ?? 0),
          ),
        ),
      ),
  )

function* permutations(items: readonly number[]): Generator<readonly number[]> {
  if (items.length === 0) yield []
  for (const item of items)
    for (const rest of permutations(items.filter((one) => one !== item))) yield [item, ...rest]
}

const closes = (counts: CableCounts, ring: readonly number[]): boolean =>
  ring.every(
    (machine, index) => (counts[machine]?.[ring[(index + 1) % ring.length] ?? -1] ?? 0) > 0,
  )

test('findRing() finds the first ring in the order of the machines, or none where there is none', () => {
  fc.assert(
    fc.property(graphs, (counts) => {
      const others = counts.map((_, index) => index).slice(1)
      let first: readonly number[] | null = null
      for (const order of permutations(others)) {
        const ring = [0, ...order]
        if (first === null && closes(counts, ring)) first = ring
      }
      assert.deepEqual(findRing(counts), first)
    }),
  )
})

test('isMesh() and missingPairs() agree', () => {
  fc.assert(
    fc.property(graphs, (counts) => {
      assert.equal(isMesh(counts), missingPairs(counts).length === 0)
      for (const [a, b] of missingPairs(counts)) assert.equal(counts[a]?.[b], 0)
    }),
  )
  assert.equal(isMesh([[0]]), false)
})

test('maximalCliques() gives groups that are complete and cannot grow', () => {
  fc.assert(
    fc.property(graphs, (counts) => {
      const all = counts.map((_, index) => index)
      const complete = (group: readonly number[]): boolean =>
        group.every((a) => group.every((b) => a === b || (counts[a]?.[b] ?? 0) > 0))
      for (const group of maximalCliques(counts)) {
        assert.ok(complete(group))
        for (const more of all.filter((one) => !group.includes(one)))
          assert.ok(!complete([...group, more]))
      }
      const pairs = all.flatMap((a) =>
        all.filter((b) => b > a && (counts[a]?.[b] ?? 0) > 0).map((b) => [a, b]),
      )
      for (const pair of pairs)
        assert.ok(maximalCliques(counts).some((group) => pair.every((one) => group.includes(one))))
    }),
  )
})

test('ringWidth() is the smallest number of cables on the way round', () => {
  const counts: CableCounts = [
    [0, 2, 1],
    [2, 0, 3],
    [1, 3, 0],
  ]
  assert.equal(ringWidth(counts, [0, 1, 2]), 1)
  assert.equal(
    ringWidth(
      [
        [0, 2],
        [2, 0],
      ],
      [0, 1],
    ),
    2,
  )
})
