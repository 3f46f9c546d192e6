// Two hundred clusters, each with its own faults: everything that Bushel promises holds in all of them.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { faultKinds } from '../../src/simulator/faults/chaos.ts'
import { runSeeds } from '../../src/simulator/pool.ts'
import { type SeedResult, runSeed } from '../../src/simulator/run-seed.ts'
import { type Summary, summarise } from '../../src/simulator/summary.ts'
import { type Invariant, invariants } from '../../src/simulator/verdict.ts'

const seeds = 200
/** Ninety seconds on two cores, counted as work so that a busy machine does not fail the suite. */
const cpuSecondsMax = 180
const runAgain = 6

describe(`seeds 1 to ${seeds}`, () => {
  let results: readonly SeedResult[] = []
  let summary: Summary
  let cpuSeconds = 0
  before(async () => {
    const start = process.cpuUsage()
    const startedMs = performance.now()
    results = await runSeeds({ from: 1, count: seeds, options: {} })
    const { user, system } = process.cpuUsage(start)
    cpuSeconds = (user + system) / 1e6
    summary = summarise(results, {})
    console.log(
      `${seeds} seeds: ${((performance.now() - startedMs) / 1000).toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of processor, ${summary.faultsTotal} faults, trace ${summary.hash}`,
    )
  })

  test('nothing that Bushel promises is broken', () => {
    const told = summary.violations.map(
      ({ invariant, text, replay }) => `${invariant} ${text}: ${replay}`,
    )
    assert.deepEqual(told, [])
    assert.equal(results.length, seeds)
  })

  test('every promise was looked at, in most seeds', () => {
    for (const invariant of Object.keys(invariants) as Invariant[]) {
      const looked = results.filter(({ checks }) => (checks[invariant] ?? 0) > 0).length
      assert.ok(looked > seeds / 4, `${invariant} was looked at in ${looked} seeds`)
    }
  })

  test('every kind of fault happened', () => {
    const missing = faultKinds.filter(({ name }) => summary.faults[name] === undefined)
    assert.deepEqual(missing, [])
  })

  test('every seed has 1 to 16 machines, five minutes and ten faults', () => {
    for (const { seed, machines, virtualMs, faults } of results) {
      const struck = faultKinds.reduce((sum, { name }) => sum + (faults[name] ?? 0), 0)
      const isRight = machines >= 1 && machines <= 16 && virtualMs >= 300_000 && struck >= 10
      assert.ok(isRight, `seed ${seed}: ${machines} machines, ${virtualMs} ms, ${struck} faults`)
    }
    assert.equal(new Set(results.map(({ machines }) => machines)).size, 16)
  })

  test('people were answered', () => {
    assert.ok((summary.requests['finished'] ?? 0) > seeds * 10)
  })

  test('the same seed gives the same trace, in another thread and after other seeds', () => {
    for (const { seed, hash } of results.slice(-runAgain)) assert.equal(runSeed(seed).hash, hash)
    assert.equal(new Set(results.map(({ hash }) => hash)).size, seeds)
  })

  test('they are quick enough to be run with every change', () => {
    assert.ok(cpuSeconds < cpuSecondsMax, `${cpuSeconds} s of processor`)
  })
})
