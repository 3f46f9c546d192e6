import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type ChainAsk, type ChainUnit, type RunTimes, paceOf, spanSeconds } from './chains.ts'
import { bestChains } from './paced-chains.ts'
import { reachOf } from './split.ts'

const layerCount = 6

interface Drawn {
  /** Times of one or two ranks by layer: a run takes the slower one's, so that layers may not add up. */
  readonly ranks: readonly { readonly own: readonly number[]; readonly later: readonly number[] }[]
  readonly room: number
}

const perLayer = fc.array(fc.integer({ min: 1, max: 20 }), {
  minLength: layerCount,
  maxLength: layerCount,
})
const drawnUnit: fc.Arbitrary<Drawn> = fc.record({
  ranks: fc.array(fc.record({ own: perLayer, later: perLayer }), { minLength: 1, maxLength: 2 }),
  room: fc.integer({ min: 1, max: layerCount }),
})

function timesOf(ranks: readonly (readonly number[])[]): RunTimes {
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
  return { sums, spans: ranks.length === 1 ? null : spans }
}

function unitOf({ ranks, room }: Drawn, counts: readonly number[], isLong: boolean): ChainUnit {
  return {
    counts,
    reach: reachOf(layerCount, (from, to) => to - from <= room),
    own: timesOf(ranks.map(({ own }) => own)),
    later: isLong ? timesOf(ranks.map(({ later }) => later)) : null,
  }
}

/** Every chain there is: the least seconds for each number of machines. */
function everyChain(ask: ChainAsk): Map<number, number> {
  const best = new Map<number, number>()
  const extend = (
    last: number,
    left: readonly number[],
    from: number,
    sofar: { readonly stages: number; readonly seconds: number; readonly pace: number },
  ): void => {
    if (from === layerCount) {
      const used = ask.classes.map(({ size }, index) => size - (left[index] ?? 0))
      const hasPinned = ask.classes.every(({ pinned }, index) => !pinned || left[index] === 0)
      if (!hasPinned || sofar.stages < 2) return
      const machines = used.reduce((sum, count) => sum + count, 0)
      best.set(machines, Math.min(best.get(machines) ?? Infinity, sofar.seconds + sofar.pace))
      return
    }
    for (const [index, unit] of ask.units.entries()) {
      const rest = left.map((count, position) => count - (unit.counts[position] ?? 0))
      const hop = last < 0 ? 0 : ask.hop(last, index)
      if (rest.some((count) => count < 0) || hop === Infinity) continue
      for (let to = from + 1; to <= (unit.reach[from] ?? 0); to++)
        extend(index, rest, to, {
          stages: sofar.stages + 1,
          seconds: sofar.seconds + hop + spanSeconds(unit.own, from, to),
          pace: Math.max(sofar.pace, unit.later === null ? 0 : spanSeconds(unit.later, from, to)),
        })
    }
  }
  const all = ask.classes.map(({ size }) => size)
  extend(-1, all, 0, { stages: 0, seconds: 0, pace: 0 })
  return best
}

function countsOf(sizes: readonly number[], ways: number): number[][] {
  const [size, ...others] = sizes
  if (size === undefined) return ways === 0 ? [[]] : []
  return Array.from({ length: Math.min(size, ways) + 1 }, (_, count) => count).flatMap((count) =>
    countsOf(others, ways - count).map((rest) => [count, ...rest]),
  )
}

const drawnAsk = (isLong: boolean): fc.Arbitrary<ChainAsk> =>
  fc
    .record({
      ways: fc.constantFrom(1, 2),
      sizes: fc.constantFrom([1, 1, 1, 1], [2, 2], [3, 1], [4], [2, 1, 1]),
      drawn: fc.array(drawnUnit, { minLength: 6, maxLength: 6 }),
      hops: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 36, maxLength: 36 }),
      pinned: fc.constantFrom(-1, 0, 1),
    })
    .map(({ ways, sizes, drawn, hops, pinned }) => ({
      classes: sizes.map((size, index) => ({ size, pinned: index === pinned })),
      layerCount,
      units: countsOf(sizes, ways).flatMap((counts, index) => {
        const one = drawn[index]
        return one === undefined ? [] : [unitOf(one, counts, isLong)]
      }),
      hop: (from, to) => {
        const seconds = hops[from * 6 + to] ?? 0
        return seconds > 35 ? Infinity : seconds
      },
    }))

/** What was found is a chain, and takes what it says. */
function assertHonest(ask: ChainAsk): void {
  for (const { units: stages, bounds, seconds, pace } of bestChains(ask).values()) {
    let sum = 0
    for (const [index, stage] of stages.entries()) {
      const unit = ask.units[stage]
      const [from = 0, to = 0] = [bounds[index], bounds[index + 1]]
      assert.ok(unit !== undefined && to > from && to <= (unit.reach[from] ?? 0))
      sum += spanSeconds(unit.own, from, to)
      if (index > 0) sum += ask.hop(stages[index - 1] ?? 0, stage)
    }
    assert.equal(pace, paceOf(ask.units, stages, bounds))
    assert.equal(sum + pace, seconds)
    assert.deepEqual([bounds[0], bounds.at(-1)], [0, layerCount])
    for (const [position, { size }] of ask.classes.entries())
      assert.ok(
        stages.reduce((used, unit) => used + (ask.units[unit]?.counts[position] ?? 0), 0) <= size,
      )
  }
}

const bySize = (entries: [number, number][]): [number, number][] =>
  entries.sort(([a], [b]) => a - b)

test('bestChains() finds the best machines, order and cut of every size', () => {
  fc.assert(
    fc.property(drawnAsk(false), (ask) => {
      assertHonest(ask)
      assert.deepEqual(
        bySize([...bestChains(ask)].map(([size, chain]) => [size, chain.seconds])),
        bySize([...everyChain(ask)]),
      )
    }),
    { numRuns: 300 },
  )
})

test('bestChains() finds the best of all where the slowest stage sets the pace of a long prompt', () => {
  fc.assert(
    fc.property(drawnAsk(true), (ask) => {
      assertHonest(ask)
      const found = [...bestChains(ask).values()].map((chain) => chain.seconds)
      assert.equal(Math.min(...found), Math.min(...everyChain(ask).values()))
    }),
    { numRuns: 500 },
  )
})
