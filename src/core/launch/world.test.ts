import assert from 'node:assert/strict'
import { test } from 'node:test'
import { probeAll } from '../../../test/support/captures.ts'
import { scriptCluster } from '../../../test/support/scripted-macs.ts'
import { type LaunchBackend, launchWorld, needsFacts } from './world.ts'

const macs = [
  { name: 'anna', platform: 'darwin-arm64' },
  { name: 'ben', platform: 'darwin-arm64' },
] as const
const cluster = {
  macs: [{ name: 'anna' }, { name: 'ben' }],
  cables: [{ ends: ['anna:1', 'ben:2'] }],
} as const

const world = async (backend: LaunchBackend, busyMachines: readonly string[] = []) =>
  launchWorld({
    backend,
    machines: macs,
    facts: await probeAll(scriptCluster(cluster, {})),
    busyMachines,
  })

test('launchWorld() takes JACCL by itself where every check passes', async () => {
  const chosen = await world('auto')
  assert.ok(chosen.kind === 'jaccl', JSON.stringify(chosen))
  assert.equal(chosen.shape, 'mesh')
  assert.equal(chosen.matrix.length, 2)
  assert.match(chosen.address, /^\d+\.\d+\.\d+\.\d+$/)
})

test('launchWorld() falls back to ring with the reason, but refuses a JACCL that was asked for', async () => {
  const ring = await world('auto', ['ben'])
  assert.ok(ring.kind === 'ring')
  assert.match(ring.why, /not JACCL: .*ben/)
  const asked = await world('jaccl', ['ben'])
  assert.ok(asked.kind === 'refused')
  assert.match(asked.reason, /^jaccl cannot be used; .*ben/)
  const shape = await world('jaccl-ring')
  assert.ok(shape.kind === 'refused')
  assert.match(shape.reason, /the cables form a mesh/)
})

test('launchWorld() keeps the given order for a ring, and needs no facts where no Mac could use JACCL', () => {
  const machines = [
    { name: 'b', platform: 'linux-x64' },
    { name: 'a', platform: 'darwin-arm64' },
  ]
  assert.equal(needsFacts('auto', machines), false)
  assert.equal(needsFacts('auto', macs), true)
  assert.equal(needsFacts('ring', macs), false)
  assert.equal(needsFacts('jaccl', machines), true)
  const chosen = launchWorld({ backend: 'auto', machines, facts: null, busyMachines: [] })
  assert.deepEqual(chosen, {
    kind: 'ring',
    order: ['b', 'a'],
    why: 'TCP ring; not JACCL: b is no Mac',
  })
})

test('launchWorld() needs nothing between machines where there is one', () => {
  const machines = [{ name: 'a', platform: 'linux-x64' }]
  assert.equal(
    launchWorld({ backend: 'auto', machines, facts: null, busyMachines: [] }).kind,
    'alone',
  )
})
