// JACCL where every check passes, ring otherwise, and the reason for either.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readCaptureFolders } from '../../adapters/probers/access/capture-folder.ts'
import { captureName } from '../../adapters/probers/access/recording.ts'
import { runtimeCommand } from '../../adapters/probers/runtime-versions.ts'
import {
  captureFolder,
  probeAll,
  toolCapture,
  withOutputs,
} from '../../../test/support/captures.ts'
import {
  type ScriptedCable,
  healthyRuntime,
  scriptCluster,
} from '../../../test/support/scripted-macs.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { planAddresses } from './address-plan.ts'
import { type BackendChoice, chooseBackend } from './choose-backend.ts'
import { matrixFaults, meshMatrix } from './device-matrix.ts'
import { ringRankFile } from './hostfile.ts'
import { versionAtLeast } from './limits.ts'
import { jacclEnvironment, ringEnvironment } from './rank-environment.ts'
import { buildTopology } from '../topology/topology.ts'

const choose = (
  machines: readonly MachineFacts[],
  busyMachines: readonly string[] = [],
): BackendChoice => chooseBackend({ machines, busyMachines, rendezvous: { kind: 'control-plane' } })

const versions = captureName(runtimeCommand('python'))
const pair = [{ name: 'anna' }, { name: 'ben' }] as const
const oneCable: readonly ScriptedCable[] = [{ ends: ['anna:1', 'ben:2'] }]

async function sick(
  changes: Parameters<typeof scriptCluster>[1],
  cables = oneCable,
): Promise<BackendChoice> {
  return choose(await probeAll(scriptCluster({ macs: pair, cables }, changes)))
}

test('chooseBackend() gives the matched pair JACCL once the rest of its tools have answered', async () => {
  const machines = await readCaptureFolders(captureFolder('matched-pair'))
  const answered = machines.map((machine) =>
    withOutputs(machine, {
      rdma_ctl_status: toolCapture('rdma_ctl-status.enabled.txt'),
      sw_vers: toolCapture('sw_vers.macos-26.4.1.txt'),
      [versions]: JSON.stringify(healthyRuntime),
    }),
  )
  const choice = choose(await probeAll(answered))
  assert.ok(choice.kind === 'jaccl', choice.why)
  assert.equal(choice.shape, 'mesh')
  assert.deepEqual([...choice.order].toSorted(), ['macbook', 'studio'])
  assert.deepEqual(choice.matrix, [
    [null, 'rdma_en3'],
    ['rdma_en3', null],
  ])
})

test('chooseBackend() takes ring for the matched pair as captured: what was not seen does not count', async () => {
  const choice = choose(await probeAll(await readCaptureFolders(captureFolder('matched-pair'))))
  assert.ok(choice.kind === 'ring')
  assert.match(choice.why, /^TCP ring over rdma; not JACCL: /)
  assert.match(choice.why, /macbook: the captures hold no output of rdma_ctl/)
  assert.deepEqual(choice.order, ['macbook', 'studio'])
  assert.deepEqual(choice.addresses, [['192.168.0.1'], ['192.168.0.2']])
})

test('chooseBackend() says for each cause why it is not JACCL', async () => {
  const noDevices = '    device          \t   node GUID\n    ------          \t----------------\n'
  const causes: readonly (readonly [RegExp, Parameters<typeof scriptCluster>[1]])[] = [
    [
      /ben runs macOS 26\.1; RDMA needs 26\.2/,
      { ben: { sw_vers: (text) => text.replace('26.4.1', '26.1') } },
    ],
    [
      /anna runs build 25E253, ben runs build 25F71/,
      { ben: { sw_vers: (text) => text.replace('25E253', '25F71') } },
    ],
    [/RDMA is disabled on anna/, { anna: { rdma_ctl_status: 'disabled\n' } }],
    [
      /ben was built without JACCL/,
      { ben: { [versions]: JSON.stringify({ ...healthyRuntime, backends: ['ring'] }) } },
    ],
    [
      /runtime MLX 0\.32\.5/,
      { ben: { [versions]: JSON.stringify({ ...healthyRuntime, mlx: '0.32.5' }) } },
    ],
    [
      /ben does not offer RDMA/,
      {
        anna: {
          'system_profiler_SPThunderboltDataType_-json': (text) => text.replace('64087', '2'),
        },
      },
    ],
    [
      /rdma_en3 of ben is down/,
      { ben: { 'ibv_devinfo_-v': (text) => text.replace('PORT_ACTIVE (4)', 'PORT_DOWN (1)') } },
    ],
    [
      /ben lists no RDMA device rdma_en3/,
      { ben: { ibv_devices: noDevices, 'ibv_devinfo_-v': 'No IB devices found\n' } },
    ],
    [
      /en2 of anna has no IPv4 address/,
      { anna: { 'ifconfig_-a': (text) => text.replace(/\tinet 192.*\n/, '') } },
    ],
    [
      /rdma_en2 of anna has fe80::9 at GID 1/,
      { anna: { 'ibv_devinfo_-v': (text) => text.replace('::ffff:192.168.0.1', 'fe80::9') } },
    ],
    [
      /rdma_en2 of anna has nothing at GID 1/,
      { anna: { 'ibv_devinfo_-v': (text) => text.replace('GID[  1]', 'GID[  3]') } },
    ],
    [
      /en2 of anna is a member of bridge0/,
      {
        anna: {
          'ifconfig_-a': (text) =>
            `${text}bridge0: flags=8863<UP> mtu 1500\n\tmember: en2 flags=3<LEARNING>\n\tstatus: active\n`,
        },
      },
    ],
  ]
  for (const [reason, changes] of causes) {
    const choice = await sick(changes)
    assert.equal(choice.kind, 'ring', String(reason))
    assert.match(choice.why, reason)
    assert.equal(choice.checks.filter((one) => one.result !== 'pass').length >= 1, true)
  }
})

test('chooseBackend() says that a missing cable is missing, and uses the network', async () => {
  const choice = await sick({}, [])
  assert.ok(choice.kind === 'ring')
  assert.equal(choice.over, 'ethernet')
  assert.match(choice.why, /no Thunderbolt cable joins anna and ben/)
  assert.deepEqual(choice.addresses, [['10.0.9.10'], ['10.0.9.11']])
})

test('chooseBackend() keeps one JACCL world per machine', async () => {
  const facts = await probeAll(scriptCluster({ macs: pair, cables: oneCable }))
  assert.equal(choose(facts).kind, 'jaccl')
  const second = choose(facts, ['ben'])
  assert.equal(second.kind, 'ring')
  assert.match(second.why, /ben already holds a JACCL world/)
})

test('chooseBackend() takes a JACCL ring where four Macs are cabled in a circle', async () => {
  const macs = ['anna', 'ben', 'cara', 'dora'].map((name) => ({ name }))
  const cables: readonly ScriptedCable[] = [
    { ends: ['anna:1', 'cara:1'] },
    { ends: ['cara:2', 'ben:1'] },
    { ends: ['ben:2', 'dora:1'] },
    { ends: ['dora:2', 'anna:2'] },
  ]
  const choice = choose(await probeAll(scriptCluster({ macs, cables })))
  assert.ok(choice.kind === 'jaccl', choice.why)
  assert.equal(choice.shape, 'ring')
  assert.deepEqual(choice.order, ['anna', 'cara', 'ben', 'dora'])
  assert.deepEqual(choice.matrix, [
    [null, 'rdma_en2', null, 'rdma_en3'],
    ['rdma_en2', null, 'rdma_en3', null],
    [null, 'rdma_en2', null, 'rdma_en3'],
    ['rdma_en3', null, 'rdma_en2', null],
  ])
  const old = choose(
    await probeAll(
      scriptCluster(
        { macs, cables },
        Object.fromEntries(
          macs.map(({ name }) => [
            name,
            { [versions]: JSON.stringify({ ...healthyRuntime, mlx: '0.32.3' }) },
          ]),
        ),
      ),
    ),
  )
  assert.equal(old.kind, 'ring')
  assert.match(old.why, /a JACCL ring needs 0\.32\.4/)
})

test('chooseBackend() makes the wired desktop rank 0, and gives its address when no control plane helps', async () => {
  const macs = [{ name: 'book', modelName: 'MacBook Pro' }, { name: 'desk' }]
  const facts = await probeAll(scriptCluster({ macs, cables: [{ ends: ['book:1', 'desk:1'] }] }))
  const choice = chooseBackend({
    machines: facts,
    busyMachines: [],
    rendezvous: { kind: 'port', port: 5000 },
  })
  assert.ok(choice.kind === 'jaccl', choice.why)
  assert.deepEqual(choice.order, ['desk', 'book'])
  assert.deepEqual(choice.rendezvous, { kind: 'coordinator', address: '10.0.9.11', port: 5000 })
})

test('chooseBackend() refuses where no network joins the machines', async () => {
  const alone = (text: string): string => text.replace('10.0.9.11', '172.20.0.2')
  const choice = await sick({ ben: { 'ifconfig_-a': alone } }, [])
  assert.equal(choice.kind, 'none')
  assert.match(choice.why, /no ring of networks joins all machines/)
  assert.equal(choose([]).kind, 'none')
})

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
