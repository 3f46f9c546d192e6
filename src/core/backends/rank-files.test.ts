// What ranks are given: device matrices, addresses of cables, environments and files.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { probeAll, toolCapture } from '../../../test/support/captures.ts'
import { type ScriptedCable, scriptCluster } from '../../../test/support/scripted-macs.ts'
import { buildTopology } from '../topology/topology.ts'
import { planAddresses } from './address-plan.ts'
import { matrixFaults, meshMatrix } from './device-matrix.ts'
import { ringRankFile } from './hostfile.ts'
import { versionAtLeast } from './limits.ts'
import { jacclEnvironment, ringEnvironment } from './rank-environment.ts'

const pair = [{ name: 'anna' }, { name: 'ben' }] as const

test('meshMatrix() names the same cable at both ends of every pair, whatever the ports', async () => {
  const wish = fc.tuple(
    fc.nat(2),
    fc.integer({ min: 1, max: 6 }),
    fc.nat(2),
    fc.integer({ min: 1, max: 6 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(wish, { minLength: 8, maxLength: 20 }), async (wishes) => {
      const used = new Set<string>()
      const cables: ScriptedCable[] = []
      for (const [a, x, b, y] of wishes) {
        const ends = [`m${a}:${x}`, `m${b}:${y}`] as const
        if (a === b || ends.some((end) => used.has(end))) continue
        for (const end of ends) used.add(end)
        cables.push({ ends })
      }
      const macs = [0, 1, 2].map((index) => ({ name: `m${index}`, ports: 6, firstInterface: 8 }))
      const topology = buildTopology(await probeAll(scriptCluster({ macs, cables })))
      const order = macs.map((mac) => mac.name)
      const matrix = meshMatrix(order, topology.cables)
      assert.deepEqual(matrixFaults(matrix), [])
      const portOf = (device: string): number => Number(device.replace('rdma_en', '')) - 7
      for (const [a, row] of matrix.entries())
        for (const [b, cell] of row.entries())
          for (const [index, device] of [cell ?? []].flat().entries()) {
            const other = [matrix[b]?.[a] ?? []].flat()[index] ?? ''
            const ends = [`m${a}:${portOf(device)}`, `m${b}:${portOf(other)}`]
            assert.ok(
              cables.some((cable) => cable.ends.every((end) => ends.includes(end))),
              ends.join(' '),
            )
          }
    }),
    { numRuns: 40 },
  )
})

test('matrixFaults() sees what JACCL would refuse', () => {
  assert.deepEqual(
    matrixFaults([
      [null, 'a'],
      ['a', null],
    ]),
    [],
  )
  assert.equal(
    matrixFaults([
      ['x', 'a'],
      ['a', null],
    ]).length,
    1,
  )
  assert.equal(
    matrixFaults([
      [null, 'a'],
      [null, null],
    ]).length,
    2,
  )
  assert.ok(
    matrixFaults([
      [null, 'a', 'b'],
      ['a', null],
    ]).length > 0,
  )
  const docs = JSON.parse(toolCapture('mlx-ibv-devices.docs-4-node-mesh.json')) as Parameters<
    typeof matrixFaults
  >[0]
  assert.deepEqual(matrixFaults(docs), [])
  const hostfile = JSON.parse(toolCapture('mlx-hostfile.docs-4-node-mesh.json')) as {
    hosts: { rdma: (typeof docs)[number] }[]
  }
  assert.deepEqual(
    hostfile.hosts.map((host) => host.rdma),
    docs,
  )
})

test('planAddresses() keeps good addresses, replaces self-assigned and shared ones', async () => {
  const facts = await probeAll(
    scriptCluster(
      {
        macs: pair,
        cables: [
          { ends: ['anna:1', 'ben:1'] },
          { ends: ['anna:2', 'ben:2'] },
          { ends: ['anna:3', 'ben:3'] },
        ],
      },
      {
        anna: {
          'ifconfig_-a': (text) =>
            text
              .replace('192.168.0.5 netmask 0xfffffffc', '169.254.7.5 netmask 0xffff0000')
              .replace('192.168.0.9 ', '192.168.0.1 '),
        },
        ben: {
          'ifconfig_-a': (text) =>
            text
              .replace('192.168.0.6 netmask 0xfffffffc', '169.254.9.6 netmask 0xffff0000')
              .replace('192.168.0.10 ', '192.168.0.2 '),
        },
      },
    ),
  )
  const plan = planAddresses(facts, buildTopology(facts).cables)
  assert.ok(plan.kind === 'planned')
  assert.deepEqual(
    plan.cables.map((one) => [
      one.action,
      ...one.ends.map((ip) => `${ip.address}/${ip.prefixLength}`),
    ]),
    [
      // The third cable repeats the first one's subnet, so neither of them is unique.
      ['assign', '192.168.0.1/30', '192.168.0.2/30'],
      ['assign', '192.168.0.5/30', '192.168.0.6/30'],
      ['assign', '192.168.0.9/30', '192.168.0.10/30'],
    ],
  )
})

test('planAddresses() does not give away a subnet that another cable keeps', async () => {
  const bare = (text: string): string => text.replaceAll(/\tinet 192\.168\.0\.[56] .*\n/g, '')
  const facts = await probeAll(
    scriptCluster(
      { macs: pair, cables: [{ ends: ['anna:2', 'ben:2'] }, { ends: ['anna:1', 'ben:1'] }] },
      { anna: { 'ifconfig_-a': bare }, ben: { 'ifconfig_-a': bare } },
    ),
  )
  const plan = planAddresses(facts, buildTopology(facts).cables)
  assert.ok(plan.kind === 'planned')
  assert.deepEqual(
    plan.cables.map((one) => [one.action, one.ends[0].address]),
    [
      ['assign', '192.168.0.5'],
      ['keep', '192.168.0.1'],
    ],
  )
})

test('jacclEnvironment() sets what MLX reads and names what must not be inherited', () => {
  const matrix = [
    [null, 'rdma_en3'],
    ['rdma_en3', null],
  ] as const
  const direct = jacclEnvironment({
    rank: 1,
    matrix,
    shape: 'mesh',
    rendezvous: { kind: 'coordinator', address: '10.0.0.1', port: 5000 },
  })
  assert.deepEqual(direct.set, { MLX_RANK: '1', MLX_JACCL_COORDINATOR: '10.0.0.1:5000' })
  assert.deepEqual(direct.files, [
    { variable: 'MLX_IBV_DEVICES', content: '[[null,"rdma_en3"],["rdma_en3",null]]' },
  ])
  for (const name of [
    'JACCL_RANK',
    'JACCL_COORDINATOR',
    'MLX_JACCL_RING',
    'MLX_HOSTFILE',
    'MLX_METAL_FAST_SYNCH',
  ])
    assert.ok(direct.unset.includes(name), name)
  const ours = jacclEnvironment({
    rank: 0,
    matrix,
    shape: 'ring',
    rendezvous: { kind: 'control-plane' },
  })
  assert.deepEqual(ours.set, { MLX_RANK: '0', MLX_JACCL_RING: '1' })
  assert.ok(ours.unset.includes('MLX_JACCL_COORDINATOR') && !ours.unset.includes('MLX_JACCL_RING'))
})

test('ringEnvironment() carries addresses with ports counted as mlx.launch counts them', () => {
  const addresses = ringRankFile(
    [{ ips: ['10.0.0.1', '10.0.1.1'] }, { ips: ['10.0.0.2', '10.0.1.2'] }],
    32323,
  )
  assert.deepEqual(addresses, [
    ['10.0.0.1:32323', '10.0.1.1:32324'],
    ['10.0.0.2:32325', '10.0.1.2:32326'],
  ])
  const environment = ringEnvironment({ rank: 1, addresses })
  assert.deepEqual(environment.set, { MLX_RANK: '1' })
  assert.deepEqual(JSON.parse(environment.files[0]?.content ?? ''), addresses)
})

test('versionAtLeast() compares numbers, not letters', () => {
  assert.ok(
    versionAtLeast('26.10', '26.2') &&
      versionAtLeast('27.0', '26.2') &&
      versionAtLeast('26.2', '26.2'),
  )
  assert.ok(
    !versionAtLeast('26.1.9', '26.2') &&
      !versionAtLeast('15.6', '26.2') &&
      !versionAtLeast('beta', '1'),
  )
})
