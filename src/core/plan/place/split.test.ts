import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type StageCosts, reachOf, splitLayers } from './split.ts'

interface Stage {
  readonly perLayer: readonly number[]
  readonly last: number
  readonly room: number
}

const layerCount = 9

function costsOf(stage: Stage, memory: readonly number[]): StageCosts {
  const costs = new Float64Array(layerCount + 1)
  for (let layer = 0; layer < layerCount; layer++)
    costs[layer + 1] = (costs[layer] ?? 0) + (stage.perLayer[layer] ?? 0)
  return {
    costs,
    last: stage.last,
    reach: reachOf(
      layerCount,
      (from, to) => memory.slice(from, to).reduce((sum, bytes) => sum + bytes, 0) <= stage.room,
    ),
  }
}

/** Every way to cut, tried one by one. */
function bruteForce(
  stages: readonly Stage[],
  memory: readonly number[],
  combine: 'sum' | 'most',
): number {
  const value = (index: number, from: number): number => {
    const stage = stages[index]
    if (stage === undefined) return Infinity
    const isLast = index === stages.length - 1
    let best = Infinity
    for (let to = from + 1; to <= layerCount; to++) {
      if (isLast !== (to === layerCount)) continue
      if (memory.slice(from, to).reduce((sum, bytes) => sum + bytes, 0) > stage.room) continue
      const own =
        stage.perLayer.slice(from, to).reduce((sum, cost) => sum + cost, 0) +
        (isLast ? stage.last : 0)
      const rest = isLast ? 0 : value(index + 1, to)
      best = Math.min(best, combine === 'sum' ? own + rest : Math.max(own, rest))
    }
    return best
  }
  return value(0, 0)
}

const stage: fc.Arbitrary<Stage> = fc.record({
  perLayer: fc.array(fc.integer({ min: 1, max: 30 }), {
    minLength: layerCount,
    maxLength: layerCount,
  }),
  last: fc.nat(20),
  room: fc.integer({ min: 1, max: 60 }),
})

test('splitLayers() finds the best cut there is, by sum and by slowest stage', () => {
  fc.assert(
    fc.property(
      fc.array(stage, { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: layerCount, maxLength: layerCount }),
      fc.constantFrom('sum' as const, 'most' as const),
      (stages, memory, combine) => {
        const bounds = splitLayers(
          stages.map((entry) => costsOf(entry, memory)),
          layerCount,
          combine,
        )
        const best = bruteForce(stages, memory, combine)
        if (bounds === null) {
          assert.equal(best, Infinity)
          return
        }
        const own = stages.map((entry, index) => {
          const from = bounds[index] ?? 0
          const to = bounds[index + 1] ?? 0
          assert.ok(to > from, 'every stage holds a layer')
          assert.ok(
            memory.slice(from, to).reduce((sum, bytes) => sum + bytes, 0) <= entry.room,
            'every stage fits',
          )
          return (
            entry.perLayer.slice(from, to).reduce((sum, cost) => sum + cost, 0) +
            (to === layerCount ? entry.last : 0)
          )
        })
        assert.equal(
          combine === 'sum' ? own.reduce((sum, value) => sum + value, 0) : Math.max(...own),
          best,
        )
      },
    ),
    { numRuns: 1500 },
  )
})

test('splitLayers() refuses more stages than layers', () => {
  const memory = Array.from({ length: layerCount }, () => 1)
  const one = costsOf({ perLayer: memory, last: 0, room: 100 }, memory)
  assert.equal(
    splitLayers(
      Array.from({ length: layerCount + 1 }, () => one),
      layerCount,
      'sum',
    ),
    null,
  )
})
