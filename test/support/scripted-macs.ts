// Macs made to order: what each tool would print on a cluster with these cables, in the shapes that the
// real captures show. A test makes one sick by changing a single output.
import type { CapturedMachine } from '../../src/adapters/probers/access/capture-folder.ts'
import { captureName } from '../../src/adapters/probers/access/recording.ts'
import { runtimeCommand } from '../../src/adapters/probers/runtime-versions.ts'
import { macCommands, sharingPreferences } from '../../src/adapters/probers/mac/commands.ts'
import type { CommandOutcome, ConnectResult } from '../../src/ports/machine-access.ts'
import * as print from './mac-outputs.ts'
import { type ScriptedMac, type Side, interfaceName, networkAddress } from './mac-outputs.ts'

export type { ScriptedMac } from './mac-outputs.ts'
export { interfaceName } from './mac-outputs.ts'

export interface ScriptedCable {
  readonly ends: readonly [PortName, PortName]
  readonly gbps?: number
  /** A dock that the first end sees in between; the second, like a real one, does not. */
  readonly via?: string
}

/** "studio:2" is port 2 of the Mac "studio". */
export type PortName = `${string}:${number}`

export interface ScriptedCluster {
  readonly macs: readonly ScriptedMac[]
  readonly cables: readonly ScriptedCable[]
}

/** A changed output: text, or a whole outcome. */
export type Changes = Readonly<Record<string, string | CommandOutcome | ((text: string) => string)>>

/** One outcome per command, for every Mac of the cluster, healthy unless changed. */
export function scriptCluster(
  cluster: ScriptedCluster,
  changes: Readonly<Record<string, Changes>> = {},
): readonly CapturedMachine[] {
  const sides = cluster.cables.flatMap((cable, index) => sidesOf(cluster, cable, index))
  return cluster.macs.map((mac, index) =>
    machineOf({
      mac,
      index,
      sides: sides.filter((side) => side.mac === mac),
      networkPeers: cluster.macs.flatMap((other, at) =>
        other === mac ? [] : [networkAddress(at)],
      ),
      changes: changes[mac.name] ?? {},
    }),
  )
}

function sidesOf(cluster: ScriptedCluster, cable: ScriptedCable, index: number): readonly Side[] {
  const [a, b] = cable.ends.map((end) => {
    const [name = '', port = ''] = end.split(':')
    const mac = cluster.macs.find((one) => one.name === name)
    if (mac === undefined) throw new Error(`no Mac "${name}" is scripted`)
    return { mac, port: Number(port) }
  })
  if (a === undefined || b === undefined) throw new Error('a cable has two ends')
  const subnet = `192.168.${Math.floor(index / 64)}`
  const address = (offset: number): string => `${subnet}.${(index % 64) * 4 + offset}`
  const gbps = cable.gbps ?? 80
  return [
    {
      ...a,
      address: address(1),
      peer: b.mac,
      peerPort: b.port,
      peerAddress: address(2),
      gbps,
      via: cable.via ?? null,
    },
    {
      ...b,
      address: address(2),
      peer: a.mac,
      peerPort: a.port,
      peerAddress: address(1),
      gbps,
      via: null,
    },
  ]
}

function machineOf(script: {
  readonly mac: ScriptedMac
  readonly index: number
  readonly sides: readonly Side[]
  /** Addresses of the other Macs on the office network. */
  readonly networkPeers: readonly string[]
  readonly changes: Changes
}): CapturedMachine {
  const { mac, sides } = script
  const reachable = [
    ...sides.map((side) => ({
      address: side.peerAddress,
      over: interfaceName(mac, side.port),
    })),
    ...script.networkPeers.map((address) => ({ address, over: 'en0' })),
  ]
  const outcomes = new Map<string, CommandOutcome>()
  const say = (argv: readonly string[], stdout: string, exitCode = 0, stderr = ''): void =>
    void outcomes.set(captureName(argv), { kind: 'exited', exitCode, stdout, stderr })
  const outputs: readonly (readonly [keyof typeof macCommands, string])[] = [
    ['swVers', 'ProductName:\t\tmacOS\nProductVersion:\t\t26.4.1\nBuildVersion:\t\t25E253\n'],
    ['hardware', print.hardwarePage(mac)],
    ['sysctl', print.sysctlText(mac)],
    [
      'vmStat',
      'Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 2000000.\nPages inactive: 2000000.\nPages speculative: 100000.\n',
    ],
    [
      'accelerator',
      '+-o AGXAcceleratorG15X  <class AGXAcceleratorG15X>\n    {\n      "gpu-core-count" = 60\n    }\n',
    ],
    ['thunderbolt', print.thunderboltJson(mac, sides)],
    ['rdmaSetting', 'enabled\n'],
    ['ibvDevices', print.ibvDevices(mac)],
    ['ibvDevinfo', print.ibvDevinfo(mac, sides)],
    ['hardwarePorts', print.hardwarePorts(mac)],
    ['serviceOrder', print.serviceOrder(mac)],
    ['ifconfig', print.ifconfig(mac, sides, script.index)],
    ['routes', print.routes(mac, sides)],
    ['firewallApplications', 'Total number of apps = 0\n'],
    ['firewallState', 'Firewall is disabled. (State = 0)\n'],
    [
      'powerSettings',
      'System-wide power settings:\nCurrently in use:\n sleep                0\n lowpowermode         0\n autorestart          1\n',
    ],
    ['powerSource', "Now drawing from 'AC Power'\n"],
    ['fileVault', 'FileVault is Off.\n'],
    ['processes', '    1     0 /sbin/launchd\n   50     1 /opt/bushel/node main.ts up\n'],
  ]
  for (const [name, text] of outputs) say(macCommands[name].argv, text)
  say(
    macCommands.bridges.argv,
    '',
    1,
    'Could not extract value, error: No value at that key path or invalid key path: VirtualNetworkInterfaces.Bridge',
  )
  say(runtimeCommand('python'), `${JSON.stringify(healthyRuntime)}\n`)
  for (const { port, address } of sides)
    say(
      ['networksetup', '-getinfo', `Thunderbolt ${port}`],
      `Manual Configuration\nIP address: ${address}\nSubnet mask: 255.255.255.252\n`,
    )
  for (const path of reachable) sayPath(say, path)
  const connections = new Map<string, ConnectResult>(
    reachable.map(({ address }) => [`${address}:${peerPort}`, { kind: 'connected' }]),
  )
  applyChanges(outcomes, script.changes)
  const commands = new Map(
    [...outcomes].map(([name, outcome]) => [name, { argv: [name], outcome }]),
  )
  return {
    name: mac.name,
    platform: 'macos',
    description: {
      platform: 'macos',
      name: mac.name,
      self: { pid: 50, uid: 0 },
      outcomes: {},
      files: {},
      folders: {},
      connections: {},
      addresses: [],
    },
    recording: {
      commands,
      files: new Map([[sharingPreferences, { kind: 'missing' }]]),
      folders: new Map(),
      connections,
      addresses: [],
    },
  }
}

export const healthyRuntime = {
  python: '3.11.9',
  mlx: '0.32.4',
  mlxLm: '0.32.2',
  backends: ['ring', 'jaccl'],
}

/** Where peers of ours listen in these scripts. */
export const peerPort = 28744

/** The other Macs answer on every way to them. */
function sayPath(
  say: (argv: readonly string[], stdout: string) => void,
  path: { readonly address: string; readonly over: string },
): void {
  const { address, over } = path
  say(['route', '-n', 'get', address], `   route to: ${address}\n  interface: ${over}\n`)
  say(
    ['ping', '-c', '1', '-t', '2', address],
    '1 packets transmitted, 1 packets received, 0.0% packet loss\n',
  )
  say(['/usr/bin/nc', '-z', '-v', '-G', '3', address, String(peerPort)], '')
}

function applyChanges(outcomes: Map<string, CommandOutcome>, changes: Changes): void {
  for (const [name, change] of Object.entries(changes)) {
    const before = outcomes.get(name)
    if (typeof change === 'object') outcomes.set(name, change)
    else {
      const text = before?.kind === 'exited' ? before.stdout : ''
      const stdout = typeof change === 'string' ? change : change(text)
      if (stdout === text) throw new Error(`the change of ${name} changed nothing`)
      outcomes.set(name, { kind: 'exited', exitCode: 0, stdout, stderr: '' })
    }
  }
}
