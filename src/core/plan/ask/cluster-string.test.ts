import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tables } from '../../../../test/planner-rows.ts'
import { type ClusterOutcome, parseCluster } from './cluster-string.ts'

const parse = (text: string): ClusterOutcome => parseCluster(text, tables)
const message = (text: string): string => {
  const outcome = parse(text)
  return outcome.kind === 'misread'
    ? outcome.message
    : `understood: ${outcome.machines.length} machines`
}
function understood(text: string): Extract<ClusterOutcome, { kind: 'understood' }> {
  const outcome = parse(text)
  if (outcome.kind === 'misread') assert.fail(outcome.message)
  return outcome
}

test('parseCluster() reads machines, memory and a mesh', () => {
  const cluster = understood('4xM3Ultra-512,tb5-mesh')
  assert.deepEqual(
    cluster.machines.map((machine) => machine.name),
    ['m3ultra-1', 'm3ultra-2', 'm3ultra-3', 'm3ultra-4'],
  )
  assert.equal(cluster.links.length, 6)
  assert.ok(cluster.links.every((link) => link.figures.class === 'rdma'))
  assert.equal(cluster.machines[0]?.memoryFreeBytes, 512 * 2 ** 30 * 0.75)
})

test('parseCluster() reads mixes, laptops, Sparks and graphics cards', () => {
  const cluster = understood(
    '2xM3Ultra-256+M5Max-128-laptop+DGXSpark-128+RTX5090-32,tb5-mesh,10gbe',
  )
  assert.equal(cluster.machines.length, 5)
  assert.equal(cluster.machines[2]?.role, 'sometimes')
  assert.equal(cluster.links.filter((link) => link.figures.class === 'rdma').length, 3)
  assert.equal(cluster.links.filter((link) => link.figures.class === 'ethernet').length, 10)
})

test('parseCluster() lays a ring where a mesh has no ports left', () => {
  assert.match(
    message('5xM4Max-128,tb5-mesh'),
    /a mesh of 5 needs 4 Thunderbolt 5 ports on each; M4Max has 3\. Use tb5-ring/,
  )
  assert.equal(understood('5xM4Max-128,tb5-ring').links.length, 5)
  assert.equal(understood('2xM4Max-128,tb5-ring').links.length, 1)
})

test('parseCluster() answers a typing error with what was probably meant', () => {
  assert.match(
    message('4xM3Utra-512,tb5-mesh'),
    /the chip "M3Utra" is unknown; did you mean M3Ultra\?/,
  )
  assert.match(message('4xM3Ultra-511,tb5-mesh'), /M3Ultra comes with 96, 256, 512 GB, not 511/)
  assert.match(
    message('4xM3Ultra-512,tb5-mseh'),
    /"tb5-mseh" is no way to link machines; did you mean tb5-mesh\?/,
  )
  assert.match(message('4xM3Ultra-512,10gb'), /10gbe/)
  assert.match(message('0xM3Ultra-512'), /no machine at all/)
  assert.match(message('tb5-mesh'), /names links but no machines/)
  assert.match(message(''), /it is empty/)
  assert.match(message('4xM3Ultra-512,,'), /understood/)
  assert.match(message('four studios'), /unknown|not a machine/)
  assert.match(message('999xM4-16,1gbe'), /too many/)
})

test('parseCluster() does not leave a machine without a link', () => {
  assert.match(
    message('M3Ultra-512+M2Ultra-192,tb5-mesh'),
    /M2 Ultra has no Thunderbolt 5 with RDMA.*add a link for it, for example ,10gbe/,
  )
})

test('parseCluster() says what it assumed', () => {
  assert.deepEqual(understood('2xM3Ultra').notes, [
    'M3Ultra: the largest memory, 512 GB, is assumed',
    'no link was named: tb5-mesh is assumed',
  ])
  assert.deepEqual(understood('2xM2Ultra-192').notes, ['no link was named: 10gbe is assumed'])
})
