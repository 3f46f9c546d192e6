// JACCL where every check passes, ring otherwise, and the reason for either.
import assert from 'node:assert/strict'
import { test } from 'node:test'
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
import { type BackendChoice, chooseBackend } from './choose-backend.ts'

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
  assert.match(choice.why, /^TCP ring over thunderbolt-ip; not JACCL: /)
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
      /rdma_en2 of anna has ::ffff:10\.9\.9\.9 at GID 1, not 192\.168\.0\.1/,
      {
        anna: { 'ibv_devinfo_-v': (text) => text.replace('::ffff:192.168.0.1', '::ffff:10.9.9.9') },
      },
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

test('chooseBackend() takes a ring for nine Macs, although every pair is cabled', async () => {
  const macs = Array.from({ length: 9 }, (_, index) => ({ name: `mac${index}`, ports: 8 }))
  const used = macs.map(() => 0)
  const cables = macs.flatMap((_, a) =>
    macs.slice(a + 1).map((__, offset): ScriptedCable => {
      const b = a + 1 + offset
      used[a] = (used[a] ?? 0) + 1
      used[b] = (used[b] ?? 0) + 1
      return { ends: [`mac${a}:${used[a]}`, `mac${b}:${used[b]}`] }
    }),
  )
  const choice = choose(await probeAll(scriptCluster({ macs, cables })))
  assert.ok(choice.kind === 'jaccl', choice.why)
  assert.equal(choice.shape, 'ring')
  assert.equal(choice.order.length, 9)
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
