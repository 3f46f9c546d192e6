// Our hostfiles against those that MLX's own configurator computes from the same captures.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  readCaptureFolders,
  type CapturedMachine,
} from '../../adapters/probers/access/capture-folder.ts'
import { captureFolder, probeAll, toolCapture } from '../../../test/support/captures.ts'
import { runPython, withoutMlx } from '../../../test/support/python.ts'
import {
  type ScriptedCable,
  type ScriptedMac,
  scriptCluster,
} from '../../../test/support/scripted-macs.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { renderDot } from '../topology/render-dot.ts'
import { buildTopology } from '../topology/topology.ts'
import { type MlxBackend, mlxConfig } from './mlx-config.ts'

interface MlxAnswer {
  readonly hostfile?: object
  readonly dot?: string
  readonly refused?: string
}

function output(machine: CapturedMachine, name: string): string {
  const outcome = machine.recording.commands.get(name)?.outcome
  return outcome?.kind === 'exited' ? outcome.stdout : ''
}

/** `ipconfig getifaddr` answers from the same ifconfig listing that we read. */
function addressesOf(facts: MachineFacts): Record<string, string> {
  assert.ok(facts.interfaces.known)
  return Object.fromEntries(
    facts.interfaces.value.flatMap((one) =>
      one.ipv4.slice(0, 1).map((ip) => [one.name, ip.address]),
    ),
  )
}

interface Case {
  readonly machines: readonly CapturedMachine[]
  readonly facts: readonly MachineFacts[]
  readonly backend: MlxBackend | null
}

function askMlx(cases: readonly Case[]): readonly MlxAnswer[] {
  const clusters = cases.map((one) => ({
    backend: one.backend,
    hosts: one.machines.map((machine, index) => ({
      name: machine.name,
      thunderbolt: output(machine, 'system_profiler_SPThunderboltDataType_-json'),
      ports: output(machine, 'networksetup_-listallhardwareports'),
      devices: output(machine, 'ibv_devices') || 'rdma_en2 rdma_en3',
      addresses: addressesOf(one.facts[index] as MachineFacts),
    })),
  }))
  return JSON.parse(runPython('mlx_configurator.py', JSON.stringify(clusters))) as MlxAnswer[]
}

const request = (facts: readonly MachineFacts[], backend: MlxBackend | null) =>
  ({ machines: facts, backend, over: 'thunderbolt', envs: [], sshNames: {} }) as const

test(
  'mlxConfig() gives the matched pair the JACCL hostfile that MLX computes',
  { skip: withoutMlx },
  async () => {
    const machines = await readCaptureFolders(captureFolder('matched-pair'))
    const facts = await probeAll(machines)
    const cases = ([null, 'jaccl', 'jaccl-ring', 'ring'] as const).map((backend) => ({
      machines,
      facts,
      backend,
    }))
    const answers = askMlx(cases)
    for (const [index, { backend }] of cases.entries()) {
      const ours = mlxConfig(request(facts, backend))
      assert.ok(ours.kind === 'configured')
      assert.deepEqual(ours.hostfile, answers[index]?.hostfile, String(backend))
      // Both addresses are already what MLX would assign, so there is nothing to set up.
      assert.deepEqual(ours.setup, {})
    }
    assert.equal(renderDot(buildTopology(facts)), answers[0]?.dot)
  },
)

test('mlxConfig() gives the matched pair the hostfile that MLX printed for it before', async () => {
  const facts = await probeAll(await readCaptureFolders(captureFolder('matched-pair')))
  const config = mlxConfig(request(facts, null))
  assert.ok(config.kind === 'configured')
  const printed = toolCapture('mlx-distributed_config.jaccl-stdout.reconstructed.txt')
  const recorded = printed
    .slice(printed.lastIndexOf('========\n') + 9)
    .replace('"mbp"', '"macbook"')
  assert.deepEqual(config.hostfile, JSON.parse(recorded))
})

const macs = (count: number): readonly ScriptedMac[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `mac${index}`,
    ports: 6,
    firstInterface: 7 + index,
  }))

/** Random cablings: every port holds one cable at most. Interfaces run past en9, where sorting matters. */
const clusters = fc
  .record({
    count: fc.integer({ min: 2, max: 4 }),
    wishes: fc.array(
      fc.tuple(
        fc.nat(3),
        fc.integer({ min: 1, max: 6 }),
        fc.nat(3),
        fc.integer({ min: 1, max: 6 }),
      ),
      { minLength: 4, maxLength: 40 },
    ),
    backend: fc.constantFrom<MlxBackend | null>(null, 'ring', 'jaccl', 'jaccl-ring'),
  })
  .map(({ count, wishes, backend }) => {
    const used = new Set<string>()
    const cables: ScriptedCable[] = []
    for (const [a, portA, b, portB] of wishes) {
      if (a === b || a >= count || b >= count) continue
      const ends = [`mac${a}:${portA}`, `mac${b}:${portB}`] as const
      if (ends.some((end) => used.has(end))) continue
      for (const end of ends) used.add(end)
      cables.push({ ends })
    }
    return { cluster: { macs: macs(count), cables }, backend }
  })

test(
  'mlxConfig() and MLX agree on random clusters: same hostfile, or both refuse',
  { skip: withoutMlx },
  async () => {
    const samples = fc.sample(clusters, { numRuns: 300, seed: 20261101 })
    // Without addresses on the ports, as before any set-up: MLX ignores those it finds, and so must we here.
    const bare = (text: string): string => text.replaceAll(/\tinet 192\.168.*\n/g, '')
    const cases: Case[] = []
    for (const { cluster, backend } of samples) {
      const cabled = new Set(
        cluster.cables.flatMap((cable) => cable.ends.map((end) => end.split(':')[0] ?? '')),
      )
      const changes = Object.fromEntries([...cabled].map((name) => [name, { 'ifconfig_-a': bare }]))
      const machines = scriptCluster(cluster, changes)
      cases.push({ machines, facts: await probeAll(machines), backend })
    }
    const answers = askMlx(cases)
    let configured = 0
    for (const [index, { facts, backend }] of cases.entries()) {
      const ours = mlxConfig(request(facts, backend))
      const theirs = answers[index]
      assert.equal(
        ours.kind === 'configured',
        theirs?.hostfile !== undefined,
        `${index}: ${theirs?.refused}`,
      )
      if (ours.kind !== 'configured') continue
      configured += 1
      assert.deepEqual(ours.hostfile, theirs?.hostfile, `cluster ${index}`)
    }
    assert.ok(configured >= 100, `${configured} of 300 random clusters could be configured`)
    const withDot = cases.filter(({ facts }) => facts.length > 1)
    for (const [index, { facts }] of withDot.entries()) {
      const lines = renderDot(buildTopology(facts))
        .split('\n')
        .filter((line) => !line.includes('style=dotted'))
      assert.deepEqual(lines, answers[index]?.dot?.split('\n'))
    }
  },
)

test('mlxConfig() sets up only what is missing, past networks in use, and out of the bridge', async () => {
  const lan = (text: string): string =>
    text
      .replace(/inet 10\.0\.9\.\d+ netmask 0xffffff00/, (line) =>
        line.replace('10.0.9', '192.168.0'),
      )
      .replaceAll(/\tinet 192\.168\.0\.\d+ netmask 0xfffffffc.*\n/g, '')
      .concat(
        'bridge0: flags=8863<UP> mtu 1500\n\tmember: en2 flags=3<LEARNING,DISCOVER>\n\tstatus: active\n',
      )
  const machines = scriptCluster(
    { macs: [{ name: 'anna' }, { name: 'ben' }], cables: [{ ends: ['anna:1', 'ben:2'] }] },
    { anna: { 'ifconfig_-a': lan } },
  )
  const config = mlxConfig(request(await probeAll(machines), 'ring'))
  assert.ok(config.kind === 'configured')
  assert.deepEqual(
    config.hostfile.hosts.map((host) => host.ips),
    [['192.168.1.1'], ['192.168.1.2']],
  )
  assert.deepEqual(config.setup, {
    anna: [
      'sudo ifconfig bridge0 deletem en2',
      'sudo ifconfig en2 inet 192.168.1.1 netmask 255.255.255.252',
      'sudo route change 192.168.1.2 -interface en2',
    ],
    ben: [
      'sudo ifconfig en3 inet 192.168.1.2 netmask 255.255.255.252',
      'sudo route change 192.168.1.1 -interface en3',
    ],
  })
})

test('mlxConfig() makes a ring over the network where there is no Thunderbolt', async () => {
  const facts = await probeAll(scriptCluster({ macs: macs(3), cables: [] }))
  const config = mlxConfig({
    ...request(facts, null),
    over: 'network',
    sshNames: { mac1: 'mac1.local' },
  })
  assert.ok(config.kind === 'configured')
  assert.deepEqual(config.hostfile, {
    backend: 'ring',
    envs: [],
    hosts: [
      { ssh: 'mac0', ips: ['10.0.9.10'], rdma: [] },
      { ssh: 'mac1.local', ips: ['10.0.9.11'], rdma: [] },
      { ssh: 'mac2', ips: ['10.0.9.12'], rdma: [] },
    ],
  })
})

test('mlxConfig() names what is missing when it refuses', async () => {
  const facts = await probeAll(
    scriptCluster({ macs: macs(3), cables: [{ ends: ['mac0:1', 'mac1:1'] }] }),
  )
  const config = mlxConfig(request(facts, null))
  assert.deepEqual(config, {
    kind: 'refused',
    reasons: [
      'the Thunderbolt cables form neither a mesh nor a ring',
      'no cable joins mac0 and mac2',
      'no cable joins mac1 and mac2',
    ],
  })
  assert.equal(mlxConfig(request(facts.slice(0, 1), null)).kind, 'refused')
})
