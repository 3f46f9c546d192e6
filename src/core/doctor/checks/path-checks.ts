// Checks 13, 14 and 15: the way to a peer, whether it answers, and whether macOS lets us ask.
import type { LaunchContext, MachineFacts, PathFacts } from '../../machine-facts/machine.ts'
import { type Check, type DoctorInput, type Observation, cannotTell, pass } from '../finding.ts'
import { cableEnds, macs } from './subjects.ts'

export const routeCheck: Check = {
  id: 'route',
  number: 13,
  title: 'traffic to the peer takes the cable',
  cites: ['kb#2098', 'kb#2027'],
  after: ['thunderbolt-5', 'peer-cabled', 'bridge', 'address'],
  examine: (input) => input.paths.flatMap((path) => routeFinding(input, path)),
}

function routeFinding(input: DoctorInput, path: PathFacts): readonly Observation[] {
  const subject = cableEnds(input).find(
    (one) =>
      one.facts.name === path.machine &&
      one.other.machine === path.peer &&
      one.other.ipv4.some((ip) => ip.address === path.address),
  )
  if (subject === undefined || subject.interfaceName === null) return []
  const { cable, interfaceName } = subject
  if (!path.routeInterface.known)
    return [{ ...cannotTell(path.machine, path.routeInterface.why), cable }]
  const taken = path.routeInterface.value
  if (taken === interfaceName)
    return [
      { ...pass([path.machine], `${path.machine} reaches ${path.address} over ${taken}`), cable },
    ]
  const change = (to: string) => ({
    argv: ['route', '-n', 'change', path.address, '-interface', to],
    admin: true,
  })
  return [
    {
      machines: [path.machine],
      cable,
      level: 'fail',
      evidence: `${path.machine} sends packets for ${path.address} (${path.peer}) over ${taken}, not over the cable on ${interfaceName}`,
      next: `Run "sudo route change ${path.address} -interface ${interfaceName}" on ${path.machine}.`,
      fix: {
        machine: path.machine,
        summary: `send packets for ${path.address} over ${interfaceName}`,
        commands: [change(interfaceName)],
        undo: [change(taken)],
        lasting: 'until the Mac restarts or the cable is unplugged',
      },
    },
  ]
}

export const reachCheck: Check = {
  id: 'reach',
  number: 14,
  title: 'the peer answers',
  cites: ['kb#2027', 'kb#2029'],
  after: ['thunderbolt-5', 'peer-cabled', 'bridge', 'address', 'route', 'local-network'],
  examine: (input) =>
    input.paths.map((path) => (path.port === null ? pingFinding(path) : connectFinding(path))),
}

function pingFinding(path: PathFacts): Observation {
  if (!path.ping.known) return cannotTell(path.machine, path.ping.why)
  if (path.ping.value)
    return pass([path.machine], `${path.peer} answers ${path.machine} at ${path.address}`)
  return {
    machines: [path.machine],
    level: 'fail',
    evidence: `${path.peer} does not answer ${path.machine} at ${path.address}`,
    next: 'Look at checks 11 and 13 on both machines, then replug the cable.',
  }
}

function connectFinding(path: PathFacts): Observation {
  if (!path.fromUs.known) return cannotTell(path.machine, path.fromUs.why)
  const target = `${path.address}:${path.port}`
  if (path.fromUs.value === 'connected')
    return pass([path.machine], `${path.machine} connects to ${path.peer} at ${target}`)
  const next = {
    refused: `Nothing listens at ${target}: start Bushel on ${path.peer}.`,
    unreachable: 'Look at checks 13 and 15.',
    'timed-out': `Start Bushel on ${path.peer} and look at its firewall (check 16).`,
  }[path.fromUs.value]
  const ping = path.ping.known ? `, ping is ${path.ping.value ? '' : 'not '}answered` : ''
  return {
    machines: [path.machine],
    level: 'fail',
    evidence: `${path.machine} cannot connect to ${path.peer} at ${target}: ${path.fromUs.value}${ping}`,
    next,
  }
}

export const localNetworkCheck: Check = {
  id: 'local-network',
  number: 15,
  title: 'macOS lets Bushel onto the local network',
  cites: ['kb#2021'],
  after: [],
  examine: (input) => macs(input).flatMap((facts) => localNetworkFinding(input, facts)),
}

function localNetworkFinding(input: DoctorInput, facts: MachineFacts): readonly Observation[] {
  const machines = [facts.name]
  const risk = facts.launch.known ? launchRisk(facts.launch.value) : null
  const paths = input.paths.filter((path) => path.machine === facts.name)
  const blocked = paths.find(
    ({ fromUs, fromSystem }) =>
      fromUs.known &&
      fromUs.value === 'unreachable' &&
      fromSystem.known &&
      fromSystem.value === 'connected',
  )
  if (blocked !== undefined)
    return [
      {
        machines,
        level: 'fail',
        evidence: `Bushel on ${facts.name} gets "no route to host" for ${blocked.address} while the system's own nc connects${risk === null ? '' : ` (it ${risk})`}`,
        next: 'System Settings → Privacy & Security → Local Network → allow Bushel (switch it off and on if it is on already); or run Bushel as a system daemon, or from Terminal.',
      },
    ]
  if (paths.some((path) => path.fromUs.known && path.fromUs.value === 'connected'))
    return [pass(machines, `Bushel on ${facts.name} reaches machines on the local network`)]
  if (!facts.launch.known) return []
  if (risk === null)
    return [
      pass(machines, `Bushel on ${facts.name} runs where Local Network privacy leaves it alone`),
    ]
  return [
    {
      machines,
      level: 'warn',
      evidence: `Bushel on ${facts.name} ${risk}, so macOS may stop it on the local network`,
      next: 'Run it from Terminal or over SSH, or as a system daemon.',
    },
  ]
}

/** Exempt are root, Terminal and SSH with their children; a tmux installed by the user is not. */
function launchRisk(launch: LaunchContext): string | null {
  if (launch.isRoot) return null
  if (launch.ancestors.includes('tmux')) return 'runs inside tmux'
  const exempt = launch.ancestors.some((name) => name === 'Terminal' || name.startsWith('sshd'))
  return exempt ? null : 'was not started from Terminal or SSH'
}
