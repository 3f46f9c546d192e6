import assert from 'node:assert/strict'
import { test } from 'node:test'
import { probeAll } from '../../../test/support/captures.ts'
import { interfaceName, scriptCluster } from '../../../test/support/scripted-macs.ts'
import { linkContext } from './link-context.ts'

const cluster = {
  macs: [{ name: 'anna' }, { name: 'ben' }],
  cables: [{ ends: ['anna:1', 'ben:2'] }],
} as const

test('linkContext() finds the cable by its interfaces, with its nominal speed and the other ways', async () => {
  const facts = await probeAll(scriptCluster(cluster, {}))
  const ends = {
    self: 'anna',
    peer: 'ben',
    local: interfaceName(cluster.macs[0], 1),
    remote: interfaceName(cluster.macs[1], 2),
  }
  const context = linkContext(facts, ends, 9)
  assert.equal(context.class, 'rdma')
  assert.deepEqual(context.nominalGbps, { known: true, value: 80 })
  assert.equal(context.ceilingGbps, 9)
  assert.ok(context.otherGbps.every((other) => other.class !== 'rdma'))
})

test('linkContext() claims no speed for a link that nobody knows', async () => {
  const facts = await probeAll(scriptCluster(cluster, {}))
  const ends = { self: 'anna', peer: 'ben', local: 'en99', remote: 'en98' }
  const context = linkContext(facts, ends, null)
  assert.equal(context.isKnown, false)
  assert.equal(context.nominalGbps.known, false)
  assert.deepEqual(context.via, [])
})
