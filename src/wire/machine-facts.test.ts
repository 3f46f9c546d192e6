// Facts of every captured machine survive the wire unchanged; others are refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf, probeAll, proberOf } from '../../test/support/captures.ts'
import { healthyPair } from '../../test/support/sick-macs.ts'
import { peerPort, scriptCluster } from '../../test/support/scripted-macs.ts'
import { machineFacts, pathFacts } from './machine-facts.ts'

const overTheWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('machineFacts takes the facts of every captured and scripted machine as they are', async () => {
  const all = [
    ...Object.values(await factsOf('matched-pair')),
    ...Object.values(await factsOf('rdma-off-pair')),
    ...Object.values(await factsOf('macos27-pair')),
    ...Object.values(await factsOf('dock-pair')),
    ...Object.values(await factsOf('linux')),
    ...(await probeAll(scriptCluster(healthyPair))),
  ]
  assert.equal(all.length, 11)
  for (const facts of all) assert.deepEqual(machineFacts.parse(overTheWire(facts)), facts)
})

test('machineFacts refuses a fact that is neither known nor explained', async () => {
  const { macbook } = await factsOf('matched-pair')
  assert.ok(macbook !== undefined)
  const broken = { ...macbook, memory: { ...macbook.memory, totalBytes: { known: true } } }
  assert.equal(machineFacts.safeParse(broken).success, false)
  assert.equal(machineFacts.safeParse({ ...macbook, platform: 'amiga' }).success, false)
})

test('pathFacts takes what a machine found on the way to a peer', async () => {
  const [studio] = scriptCluster(healthyPair)
  assert.ok(studio !== undefined)
  const paths = await proberOf(studio).probePaths([
    { peer: 'book', address: '192.168.0.2', port: peerPort },
  ])
  assert.deepEqual(pathFacts.parse(overTheWire(paths[0])), paths[0])
})
