// What takes too long for every change: thousands of seeds, and a day in the life of a full cluster.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSeeds } from '../../src/simulator/pool.ts'
import { runSoak } from '../../src/simulator/soak.ts'
import { summarise } from '../../src/simulator/summary.ts'

const seeds = 10_000
const soakHours = 24
const soakMachines = 16

test(`nothing breaks in ${seeds} seeds`, async () => {
  const results = await runSeeds({
    from: 1,
    count: seeds,
    options: {},
    onResult: (_, done) => {
      if (done % 500 === 0) console.log(`${done} of ${seeds} seeds`)
    },
  })
  const { violations, figures, faultsTotal, hash } = summarise(results, {})
  console.log(`${faultsTotal} faults, trace ${hash}`, figures)
  assert.deepEqual(
    violations.map(({ invariant, text, replay }) => `${invariant} ${text}: ${replay}`),
    [],
  )
})

test(`nothing grows in ${soakHours} hours of ${soakMachines} machines`, () => {
  const { hours, growth, result } = runSoak({
    seed: 1,
    hours: soakHours,
    machines: soakMachines,
    onHour: (hour) => console.log(JSON.stringify(hour)),
  })
  assert.equal(hours.length, soakHours)
  assert.deepEqual(growth, [])
  assert.deepEqual(
    result.violations.map(({ invariant, text }) => `${invariant} ${text}`),
    [],
  )
})
