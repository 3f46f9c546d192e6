import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type ChainAsk, type ChainUnit, bestChains, spanSeconds } from './chains.ts'
import { reachOf } from './split.ts'

const layerCount = 6
const machineCount = 4
const masksByWays = {
  1: [1, 2, 4, 8],
  2: [3, 5, 6, 9, 10, 12],
} as const

interface Drawn {
  /** Times of two ranks by layer: a run takes the slower one's, so that layers may not add up. */
  readonly ranks: readonly (readonly number[])[]
  readonly room: number
}

const perLayer = fc.array(fc.integer({ min: 1, max: 20 }), {
  minLength: layerCount,
  maxLength: layerCount,
})
const drawnUnit: fc.Arbitrary<Drawn> = fc.record({
  ranks: fc.array(perLayer, { minLength: 1, maxLength: 2 }),
  room: fc.integer({ min: 1, max: layerCount }),
})

function unitOf({ ranks, room }: Drawn, mask: number): ChainUnit {
  const size = layerCount + 1
  const sums = new Float64Array(size)
  const spans = new Float64Array(size * size).fill(Infinity)
  for (let from = 0; from < layerCount; from++)
    for (let to = from + 1; to <= layerCount; to++)
      spans[from * size + to] = Math.max(
        ...ranks.map((rank) => rank.slice(from, to).reduce((sum, value) => sum + value, 0)),
      )
  for (let to = 1; to <= layerCount; to++)
    sums[to] = (sums[to - 1] ?? 0) + (spans[(to - 1) * size + to] ?? 0)
  const reach = reachOf(layerCount, (from, to) => to - from <= room)
  return { mask, reach, sums, spans: ranks.length === 1 ? null : spans }
}

/** Every chain from here on: the least seconds for each set of machines. */
function everyChain(ask: ChainAsk): Map<number, number> {
  const best = new Map<number, number>()
  const extend = (last: number, used: number, from: number, seconds: number): void => {
    if (from === layerCount) {
      const machines = [0, 1, 2, 3].filter((bit) => (used & (1 << bit)) !== 0).length
      if ((used & ask.pinned) === ask.pinned && used !== ask.units[last]?.mask)
        best.set(machines, Math.min(best.get(machines) ?? Infinity, seconds))
      return
    }
    for (const [index, unit] of ask.units.entries()) {
      if ((unit.mask & used) !== 0) continue
      const hop = last < 0 ? 0 : ask.hop(last, index)
      if (hop === Infinity) continue
      for (let to = from + 1; to <= (unit.reach[from] ?? 0); to++)
        extend(index, used | unit.mask, to, seconds + hop + spanSeconds(unit, from, to))
    }
  }
  extend(-1, 0, 0, 0)
  return best
}

test('bestChains() finds the best machines, order and cut of every size', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1 as const, 2 as const),
      fc.array(drawnUnit, { minLength: 6, maxLength: 6 }),
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 36, maxLength: 36 }),
      fc.constantFrom(0, 1, 6),
      (ways, drawn, hops, pinned) => {
        const units = masksByWays[ways].flatMap((mask, index) => {
          const one = drawn[index]
          return one === undefined ? [] : [unitOf(one, mask)]
        })
        const hop = (from: number, to: number): number => {
          const seconds = hops[from * 6 + to] ?? 0
          return seconds > 35 ? Infinity : seconds
        }
        const ask: ChainAsk = { units, machineCount, layerCount, hop, pinned }
        const chains = bestChains(ask)
        assert.deepEqual(
          new Map([...chains].map(([size, chain]) => [size, chain.seconds])),
          new Map([...everyChain(ask)].sort(([a], [b]) => a - b)),
        )
        for (const { units: stages, bounds, seconds } of chains.values()) {
          let sum = 0
          for (const [index, stage] of stages.entries()) {
            const unit = units[stage]
            const [from = 0, to = 0] = [bounds[index], bounds[index + 1]]
            assert.ok(unit !== undefined && to > from && to <= (unit.reach[from] ?? 0))
            sum +=
              spanSeconds(unit, from, to) + (index > 0 ? hop(stages[index - 1] ?? 0, stage) : 0)
          }
          assert.equal(sum, seconds)
          assert.deepEqual([bounds[0], bounds.at(-1)], [0, layerCount])
        }
      },
    ),
    { numRuns: 300 },
  )
})
