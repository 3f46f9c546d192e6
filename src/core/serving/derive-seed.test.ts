import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { deriveSeed } from './derive-seed.ts'

const seeds = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }).map(String)

test('deriveSeed() leaves the first choice its seed', () => {
  fc.assert(fc.property(seeds, (seed) => deriveSeed(seed, 0) === seed))
})

test('deriveSeed() gives every choice another seed of 64 bits, the same each time', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const drawn = Array.from({ length: 16 }, (_, choice) => deriveSeed(seed, choice))
      assert.equal(new Set(drawn).size, 16)
      assert.deepEqual(
        drawn,
        Array.from({ length: 16 }, (_, choice) => deriveSeed(seed, choice)),
      )
      assert.ok(drawn.every((text) => /^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n))
    }),
  )
})

test('deriveSeed() of neighbouring seeds has nothing in common', () => {
  const first = new Set(Array.from({ length: 16 }, (_, choice) => deriveSeed('7', choice)))
  assert.ok(
    Array.from({ length: 16 }, (_, choice) => deriveSeed('8', choice)).every((s) => !first.has(s)),
  )
})
