// The Mac prober as a whole: matched captures, sick tools, and interfaces that move while it looks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  capturedMachine,
  factsOf,
  proberOf,
  toolCapture,
} from '../../../../test/support/captures.ts'
import { findContradictions } from '../../../core/machine-facts/consistency.ts'
import { isKnown, known } from '../../../core/machine-facts/fact.ts'
import type { MachineFacts } from '../../../core/machine-facts/machine.ts'
import { thunderboltPortNumber } from '../../../core/machine-facts/network.ts'
import { type RdmaDevice, ipv4OfGid } from '../../../core/machine-facts/rdma.ts'
import { switchUidOfNodeGuid } from '../../../core/machine-facts/thunderbolt.ts'
import type { CommandOutcome, MachineAccess } from '../../../ports/machine-access.ts'
import { captureName, emptyRecording, replay } from '../access/recording.ts'
import { macCommands } from './commands.ts'
import { createMacProber } from './mac-prober.ts'

function proberWith(access: MachineAccess) {
  return createMacProber({
    name: 'mac',
    access,
    nowMs: () => 7,
    self: { pid: 50, uid: 501 },
    runtimePython: 'python',
  })
}

/** Checks one RDMA device against the three other tools that know its port. */
function assertDeviceAgrees(machine: MachineFacts, device: RdmaDevice): void {
  assert.ok(machine.hardwarePorts.known && machine.thunderbolt.known && machine.interfaces.known)
  const name = device.name.replace('rdma_', '')
  const label = machine.hardwarePorts.value.find((one) => one.device === name)?.port ?? ''
  const receptacle = thunderboltPortNumber(label) ?? -1
  assert.deepEqual(device.portLid, known(receptacle))
  const bus = machine.thunderbolt.value.find((one) => isKnown(one.receptacle, receptacle))
  assert.ok(device.nodeGuid.known && bus?.switchUid.known === true)
  assert.equal(switchUidOfNodeGuid(device.nodeGuid.value), bus.switchUid.value)
  const ipv4 = machine.interfaces.value.find((one) => one.name === name)?.ipv4[0]?.address
  const gid = device.gids.find((one) => one.index === 1)
  assert.equal(gid === undefined ? undefined : ipv4OfGid(gid), ipv4)
}

test('the matched pair agrees across its tools: port, interface, device, identity, address', async () => {
  const machines = Object.values(await factsOf('matched-pair'))
  for (const machine of machines) assert.deepEqual(findContradictions(machine), [])
  const devices = machines.flatMap((machine) =>
    machine.rdma.devices.known ? machine.rdma.devices.value.map((one) => ({ machine, one })) : [],
  )
  assert.equal(devices.length, 9)
  for (const { machine, one } of devices) assertDeviceAgrees(machine, one)
})

test('the Mac prober turns what it cannot learn into facts that say why', async () => {
  const facts = (await factsOf('matched-pair'))['macbook']
  assert.ok(facts !== undefined)
  assert.ok(!facts.rdma.setting.known)
  assert.equal(facts.rdma.setting.why.detail, 'the captures hold no output of rdma_ctl')
  assert.ok(!facts.system.version.known && !facts.runtime.known && !facts.launch.known)
})

async function probeWithEvery(outcome: CommandOutcome): Promise<MachineFacts> {
  const access = { ...replay(emptyRecording()), runCommand: async () => outcome }
  return proberWith(access).probeMachine()
}

test('the Mac prober survives a Mac on which every tool is missing, hangs, is silent, refuses or speaks another language', async () => {
  const outcomes: readonly (readonly [CommandOutcome, string])[] = [
    [{ kind: 'missing' }, 'tool-missing'],
    [{ kind: 'timed-out', afterMs: 5000 }, 'timed-out'],
    [{ kind: 'exited', exitCode: 0, stdout: '', stderr: '' }, 'empty'],
    [
      { kind: 'exited', exitCode: 1, stdout: '', stderr: 'sudo: a password is required' },
      'needs-admin',
    ],
    [{ kind: 'exited', exitCode: 0, stdout: 'Befehl unbekannt\n', stderr: '' }, 'not-understood'],
  ]
  for (const [outcome, kind] of outcomes) {
    const facts = await probeWithEvery(outcome)
    for (const fact of [
      facts.thunderbolt,
      facts.interfaces,
      facts.hardwarePorts,
      facts.rdma.deviceNames,
      facts.rdma.devices,
      facts.rdma.setting,
    ]) {
      assert.ok(!fact.known)
      assert.equal(fact.why.kind, kind)
    }
    assert.ok(
      !facts.memory.totalBytes.known &&
        !facts.system.version.known &&
        !facts.power.sleepMinutes.known,
    )
  }
})

test('the Mac prober falls back to the text form of system_profiler and the brief form of ibv_devinfo', async () => {
  const machine = await capturedMachine('macos27-pair/macbook-b')
  const facts = await proberOf(machine).probeMachine()
  assert.ok(facts.rdma.devices.known)
  assert.equal(facts.rdma.devices.value.length, 3)
})

test('the Mac prober asks a driver that hung only once', async () => {
  const asked: string[] = []
  const access = {
    ...replay(emptyRecording()),
    runCommand: async (argv: readonly string[]): Promise<CommandOutcome> => {
      asked.push(captureName(argv))
      return { kind: 'timed-out', afterMs: 1 }
    },
  }
  await proberWith(access).probeMachine()
  assert.deepEqual(
    asked.filter((name) => name.startsWith('ibv_devinfo')),
    ['ibv_devinfo_-v'],
  )
})

test('the Mac prober looks again when interfaces were renamed under way, and believes the second look', async () => {
  const machine = await capturedMachine('matched-pair/studio')
  const steady = replay(machine.recording)
  let listings = 0
  const swapped = (text: string): string =>
    text
      .replace('Device: en3', 'Device: enX')
      .replace('Device: en4', 'Device: en3')
      .replace('Device: enX', 'Device: en4')
  const access: MachineAccess = {
    ...steady,
    runCommand: async (argv, options) => {
      const outcome = await steady.runCommand(argv, options)
      if (argv[1] !== macCommands.hardwarePorts.argv[1] || outcome.kind !== 'exited') return outcome
      listings += 1
      return listings > 1 ? outcome : { ...outcome, stdout: swapped(outcome.stdout) }
    },
  }
  const facts = await proberWith(access).probeMachine()
  assert.equal(listings, 2)
  assert.deepEqual(findContradictions(facts), [])
})

test('findContradictions() names the interface when the listings keep disagreeing', async () => {
  const machine = await capturedMachine('matched-pair/studio')
  const steady = replay(machine.recording)
  const access: MachineAccess = {
    ...steady,
    runCommand: async (argv, options) => {
      const outcome = await steady.runCommand(argv, options)
      return argv[1] === '-listallhardwareports' && outcome.kind === 'exited'
        ? {
            ...outcome,
            stdout: outcome.stdout
              .replace(
                'Hardware Port: Thunderbolt 2\nDevice: en3',
                'Hardware Port: Thunderbolt 2\nDevice: en4',
              )
              .replace(
                'Hardware Port: Thunderbolt 3\nDevice: en4',
                'Hardware Port: Thunderbolt 3\nDevice: en3',
              ),
          }
        : outcome
    },
  }
  const found = findContradictions(await proberWith(access).probeMachine())
  assert.deepEqual([...new Set(found.map((one) => one.interface))].toSorted(), ['en3', 'en4'])
  assert.ok(found.some((one) => /ibv_devinfo gives rdma_en3 as port 2/.test(one.detail)))
})

function macWith(
  outputs: Record<string, string>,
  exitCodes: Record<string, number> = {},
): MachineAccess {
  return {
    ...replay(emptyRecording()),
    runCommand: async (argv) => {
      const stdout = outputs[captureName(argv)]
      return stdout === undefined
        ? { kind: 'missing' }
        : { kind: 'exited', exitCode: exitCodes[captureName(argv)] ?? 0, stdout, stderr: '' }
    },
  }
}

test('the Mac prober uses what sysctl printed although it complained about one name', async () => {
  const name = captureName(macCommands.sysctl.argv)
  const access = macWith({ [name]: 'hw.memsize: 34359738368\nhw.physicalcpu: 12\n' }, { [name]: 1 })
  const facts = await proberWith(access).probeMachine()
  assert.deepEqual(facts.memory.totalBytes, known(34_359_738_368))
  assert.deepEqual(facts.hardware.cpuCores, known(12))
  assert.equal(facts.memory.wiredLimit.known, false)
})

test('the Mac prober finds ranks and the parents of its own process', async () => {
  const processes = [
    '    1     0 /sbin/launchd',
    '   30     1 /System/Applications/Utilities/Terminal.app/Contents/MacOS/Terminal',
    '   40    30 -zsh',
    '   50    40 /opt/bushel/node main.ts up',
    '   60    50 /opt/bushel/python -m bushel_worker --rank 0',
    '   61     1 /opt/bushel/python -m bushel_worker --rank 1',
    '   62     1 vim notes-on-bushel_worker.md',
  ].join('\n')
  const access = macWith({ [captureName(macCommands.processes.argv)]: `${processes}\n` })
  const facts = await createMacProber({
    name: 'mac',
    access,
    nowMs: () => 7,
    self: { pid: 50, uid: 501 },
    runtimePython: null,
    expectedRankPids: () => [60],
    failedStartsThisBoot: () => 2,
  }).probeMachine()
  assert.deepEqual(
    facts.launch,
    known({ isRoot: false, ancestors: ['zsh', 'Terminal', 'launchd'] }),
  )
  assert.deepEqual(
    facts.ranks.processes,
    known([
      { pid: 60, parentPid: 50, expected: true },
      { pid: 61, parentPid: 1, expected: false },
    ]),
  )
  assert.deepEqual(facts.ranks.failedStartsThisBoot, known(2))
})

test('the Mac prober takes a missing preference file for "nothing is shared", not a failing plutil', async () => {
  const absent = { ...macWith({}), readText: async () => ({ kind: 'missing' }) as const }
  assert.deepEqual(
    (await proberWith(absent).probeMachine()).internetSharing,
    known({ enabled: false, devices: [] }),
  )
  const unreadable = {
    ...macWith({}),
    readText: async () => ({ kind: 'refused', code: 'EACCES' }) as const,
  }
  assert.equal((await proberWith(unreadable).probeMachine()).internetSharing.known, false)
})

test('probePaths() compares our own connection with one of the system', async () => {
  // The error that Node gives where Local Network privacy stops it.
  const error = toolCapture('node-error.local-network-denied.ehostunreach.txt')
  const code = /code: '(\w+)'/.exec(error)?.[1] ?? ''
  const access: MachineAccess = {
    ...macWith({
      'route_-n_get_192.168.0.2': '   route to: 192.168.0.2\n  interface: en3\n',
      'ping_-c_1_-t_2_192.168.0.2': '1 packets transmitted, 1 packets received, 0.0% packet loss\n',
      'nc_-z_-v_-G_3_192.168.0.2_28744': '',
    }),
    connectTcp: async () => ({ kind: 'failed', code }),
  }
  const [path] = await proberWith(access).probePaths([
    { peer: 'studio', address: '192.168.0.2', port: 28744 },
  ])
  assert.deepEqual(path, {
    machine: 'mac',
    peer: 'studio',
    address: '192.168.0.2',
    port: 28744,
    routeInterface: known('en3'),
    ping: known(true),
    fromUs: known('unreachable'),
    fromSystem: known('connected'),
  })
})
