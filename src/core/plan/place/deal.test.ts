import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type DealtRank, dealUnits } from './deal.ts'

interface Drawn {
  readonly unitsMax: number
  readonly decode: readonly [number, number]
  readonly prefill: readonly [number, number]
}

const price = fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 30 }))
const drawnRank: fc.Arbitrary<Drawn> = fc.record({
  unitsMax: fc.integer({ min: 1, max: 8 }),
  decode: price,
  prefill: price,
})

function rankOf({ unitsMax, decode, prefill }: Drawn): DealtRank {
  return {
    unitsMax,
    decode: (units) => decode[0] + decode[1] * units,
    prefill: (units) => prefill[0] + prefill[1] * units,
  }
}

function secondsOf(ranks: readonly DealtRank[], deal: readonly number[]): number {
  const slowest = (phase: 'decode' | 'prefill'): number =>
    Math.max(...ranks.map((rank, index) => rank[phase](deal[index] ?? 0)))
  return slowest('decode') + slowest('prefill')
}

/** Every deal there is. */
function everyDeal(ranks: readonly DealtRank[], units: number): number[][] {
  const [first, ...others] = ranks
  if (first === undefined) return units === 0 ? [[]] : []
  return Array.from({ length: Math.min(first.unitsMax, units) }, (_, index) => index + 1).flatMap(
    (count) => everyDeal(others, units - count).map((rest) => [count, ...rest]),
  )
}

test('dealUnits() finds the best deal there is, or says that there is none', () => {
  fc.assert(
    fc.property(
      fc.array(drawnRank, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 12 }),
      (drawn, units) => {
        const ranks = drawn.map(rankOf)
        const deals = everyDeal(ranks, units)
        const deal = dealUnits(ranks, units)
        if (deals.length === 0) {
          assert.equal(deal, null)
          return
        }
        assert.ok(deal !== null)
        assert.equal(
          deal.reduce((sum, count) => sum + count, 0),
          units,
        )
        assert.ok(
          deal.every((count, index) => count >= 1 && count <= (drawn[index]?.unitsMax ?? 0)),
        )
        assert.equal(secondsOf(ranks, deal), Math.min(...deals.map((one) => secondsOf(ranks, one))))
      },
    ),
    { numRuns: 500 },
  )
})

test('dealUnits() deals evenly among equals', () => {
  const equal = rankOf({ unitsMax: 8, decode: [3, 2], prefill: [1, 5] })
  assert.deepEqual(dealUnits([equal, equal, equal, equal], 8), [2, 2, 2, 2])
})

test('dealUnits() comes to an end where rounding lets more units look quicker', () => {
  const slow: DealtRank = {
    unitsMax: 47,
    // Up to seven units take the same time, but six are added up to a hair more.
    decode: (units) => 2 * (units === 6 ? 1 + 2 ** -52 : 1) + 0.1 * Math.max(0, units - 7),
    prefill: (units) => 0.0924 + 0.0082 * units,
  }
  const quick: DealtRank = {
    unitsMax: 24,
    decode: () => 1,
    prefill: (units) => 0.0617 + 0.0054 * units,
  }
  assert.deepEqual(dealUnits([slow, quick, quick, quick], 64), [7, 19, 19, 19])
})
