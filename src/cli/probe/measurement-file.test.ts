import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { factsOf } from '../../../test/support/captures.ts'
import { machineId } from '../../core/ids.ts'
import { known } from '../../core/machine-facts/fact.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { type Measurements, applyMeasurements } from '../../core/plan/probe/apply.ts'
import { combineVersions } from '../../core/plan/probe/measured.ts'
import type { PlanMachine } from '../../core/plan/types.ts'
import { UserError } from '../command.ts'
import {
  cablesOf,
  measurementPath,
  mergeMeasurements,
  nothingMeasured,
  presentOf,
  readMeasurements,
  versionsOf,
  writeMeasurements,
} from './measurement-file.ts'

const home = mkdtempSync(join(tmpdir(), 'bushel-measured-'))
after(() => rmSync(home, { recursive: true }))

const studio = machineId('a'.repeat(64))
const book = machineId('b'.repeat(64))
const runtime = known({ python: '3.12.1', mlx: '0.32.4', mlxLm: '0.32.2', backends: ['ring'] })

async function pair(): Promise<readonly MachineFacts[]> {
  const facts = await factsOf('matched-pair')
  return Object.values(facts).map((one) => ({ ...one, runtime }))
}
const idOf = new Map([
  ['studio', studio],
  ['macbook', book],
])

function measured(facts: readonly MachineFacts[]): Measurements {
  const [first] = facts
  assert.ok(first !== undefined)
  const versions = versionsOf(first)
  assert.ok(versions !== null)
  const common = { spread: 0.02, versions, atMs: 1 }
  return {
    machines: [studio, book].map((machine) => {
      const one = facts.find(({ name }) => idOf.get(name) === machine)
      assert.ok(one !== undefined)
      return {
        machine,
        value: { memoryBytesPerSecond: 5e11, kernelSeconds: 4e-6, matmulFlops: 2e13 },
        ...common,
        versions: versionsOf(one) ?? versions,
        cables: null,
      }
    }),
    worlds: [],
    hops: [
      {
        source: studio,
        target: book,
        value: { hopSeconds: 3e-4 },
        ...common,
        versions: combineVersions(facts.map((one) => versionsOf(one) ?? versions)),
        cables: cablesOf(facts),
      },
    ],
  }
}

test('readMeasurements() gives back what writeMeasurements() kept, and nothing before', async () => {
  assert.deepEqual(readMeasurements(home), nothingMeasured)
  const all = measured(await pair())
  await writeMeasurements(home, all)
  assert.deepEqual(readMeasurements(home), all)
})

test('readMeasurements() names a damaged file and what to do', () => {
  const other = join(home, 'other')
  mkdirSync(dirname(measurementPath(other)), { recursive: true })
  for (const text of ['{', '{"version":2}', '[]']) {
    writeFileSync(measurementPath(other), text)
    assert.throws(
      () => readMeasurements(other),
      (error) => error instanceof UserError && /run "bushel probe"/.test(error.message),
    )
  }
})

test('mergeMeasurements() replaces what was measured again, in either direction, and keeps the rest', async () => {
  const old = measured(await pair())
  const [hop] = old.hops
  const [first] = old.machines
  assert.ok(hop !== undefined && first !== undefined)
  const again = { ...hop, source: hop.target, target: hop.source, value: { hopSeconds: 1e-3 } }
  const merged = mergeMeasurements(old, {
    machines: [{ ...first, atMs: 9 }],
    worlds: [],
    hops: [again],
  })
  assert.deepEqual(merged.hops, [again])
  assert.deepEqual(
    merged.machines.map(({ atMs }) => atMs),
    [9, 1],
  )
})

test('a measurement goes stale with the system, with MLX and with the cables, and says which', async () => {
  const facts = await pair()
  const store = measured(facts)
  const machines = [studio, book].map((id): PlanMachine => ({
    id,
    name: id === studio ? 'studio' : 'macbook',
    chip: null,
    measurement: {},
    memoryFreeBytes: 1e11,
    role: 'always-on',
    onBattery: false,
    inJacclWorld: false,
    running: [],
    diskBytesPerSecond: null,
  }))
  const look = (now: readonly MachineFacts[]): readonly string[] =>
    applyMeasurements({ machines, links: [] }, store, presentOf(now, idOf)).stale
  assert.deepEqual(look(facts), [])
  const changed = (change: Partial<MachineFacts>): readonly MachineFacts[] =>
    facts.map((one) => (one.name === 'studio' ? { ...one, ...change } : one))
  const newMlx = known({ python: '3.12.1', mlx: '0.33.0', mlxLm: '0.32.2', backends: ['ring'] })
  assert.match(look(changed({ runtime: newMlx })).join(), /studio.*MLX changed from 0\.32\.4 to/)
  const [one] = facts
  assert.ok(one !== undefined)
  const system = { ...one.system, version: known('27.0') }
  assert.match(look(changed({ system })).join(), /the system changed from .* to .*27\.0/)
  assert.match(look(changed({ thunderbolt: known([]) })).join(), /a cable or route changed/)
})
