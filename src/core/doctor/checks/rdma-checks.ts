// Checks 3, 4, 9, 12 and 23: the RDMA switch, its devices, their ports and addresses, and MLX's own part.
import { isKnown } from '../../machine-facts/fact.ts'
import { ipv4OfGid, jacclGidIndex } from '../../machine-facts/rdma.ts'
import { type Check, type Observation, cannotTell, judge, pass } from '../finding.ts'
import { type EndSubject, cableEnds, macs } from './subjects.ts'

const recovery = 'start it in Recovery → Utilities → Terminal → "rdma_ctl enable" → restart'

export const rdmaSwitchCheck: Check = {
  id: 'rdma-switch',
  number: 3,
  title: 'RDMA is switched on',
  cites: ['kb#413', 'kb#2005'],
  after: ['system', 'thunderbolt-5'],
  examine: (input) =>
    macs(input).map((facts) =>
      judge(facts.name, facts.rdma.setting, (setting) =>
        setting === 'enabled'
          ? pass([facts.name], `rdma_ctl says enabled on ${facts.name}`)
          : {
              machines: [facts.name],
              level: 'fail',
              evidence: `rdma_ctl says ${setting} on ${facts.name}`,
              next: `Switch it on at the machine itself: ${recovery}. It cannot be done remotely.`,
            },
      ),
    ),
}

export const rdmaDevicesCheck: Check = {
  id: 'rdma-devices',
  number: 4,
  title: 'RDMA devices are there',
  cites: ['kb#412', 'kb#2004'],
  after: ['system', 'thunderbolt-5', 'rdma-switch'],
  examine: (input) =>
    macs(input).map((facts) =>
      judge(facts.name, facts.rdma.deviceNames, (names) => {
        const devices = names.filter((name) => name.startsWith('rdma_'))
        if (devices.length > 0)
          return pass([facts.name], `${facts.name} lists ${devices.join(', ')}`)
        const on = isKnown(facts.rdma.setting, 'enabled')
        return {
          machines: [facts.name],
          level: 'fail',
          evidence: `ibv_devices lists no RDMA device on ${facts.name}${on ? ' although the switch is on' : ''}`,
          next: on
            ? `Restart ${facts.name}; if the list stays empty, ${recovery}.`
            : `Look at "rdma_ctl status" on ${facts.name}; if it is not enabled, ${recovery}.`,
        }
      }),
    ),
}

export const portStateCheck: Check = {
  id: 'port-state',
  number: 9,
  title: 'the RDMA port is active',
  cites: ['kb#2028', 'kb#2025'],
  after: ['system', 'thunderbolt-5', 'rdma-switch', 'rdma-devices', 'peer-cabled', 'peer-rdma'],
  afterAtPeer: ['system', 'thunderbolt-5', 'rdma-switch', 'rdma-devices', 'peer-rdma'],
  examine: (input) => [
    ...macs(input).flatMap((facts) => {
      const { devices } = facts.rdma
      if (devices.known || devices.why.kind !== 'timed-out') return []
      return [
        {
          machines: [facts.name],
          level: 'fail' as const,
          evidence: `${devices.why.detail} on ${facts.name}: the RDMA driver is stuck`,
          next: `Unplug the Thunderbolt cables of ${facts.name} and plug them in again; if it still hangs, restart the Mac.`,
        },
      ]
    }),
    ...cableEnds(input)
      .filter(({ facts, cable }) => cable.via.length === 0 && !isStuck(facts.rdma.devices))
      .map(portFinding),
  ],
}

const isStuck = (fact: EndSubject['facts']['rdma']['devices']): boolean =>
  !fact.known && fact.why.kind === 'timed-out'

function portFinding({ cable, end, facts }: EndSubject): Observation {
  if (!end.rdmaDevice.known) return { ...cannotTell(facts.name, end.rdmaDevice.why), cable }
  const device = end.rdmaDevice.value
  if (!end.portState.known) return { ...cannotTell(facts.name, end.portState.why), cable }
  if (end.portState.value === 'active')
    return { ...pass([facts.name], `${device} of ${facts.name} is active`), cable }
  return {
    machines: [facts.name],
    cable,
    level: 'fail',
    evidence: `${device} of ${facts.name} is ${end.portState.value} although a Mac is plugged in`,
    next: 'Look at check 3 on both Macs, then unplug the cable and plug it in again.',
  }
}

export const gidCheck: Check = {
  id: 'gid',
  number: 12,
  title: 'the port offers its IPv4 address where JACCL looks for it',
  cites: ['kb#2014', 'kb#2026'],
  after: [
    'system',
    'thunderbolt-5',
    'rdma-switch',
    'rdma-devices',
    'peer-cabled',
    'peer-rdma',
    'port-state',
    'bridge',
    'address',
  ],
  afterAtPeer: ['thunderbolt-5'],
  examine: (input) =>
    cableEnds(input)
      .filter(({ cable }) => cable.via.length === 0)
      .map(gidFinding),
}

function gidFinding(subject: EndSubject): Observation {
  const { cable, end, facts, interfaceName } = subject
  if (!end.rdmaDevice.known) return { ...cannotTell(facts.name, end.rdmaDevice.why), cable }
  if (!facts.rdma.devices.known) return { ...cannotTell(facts.name, facts.rdma.devices.why), cable }
  const name = end.rdmaDevice.value
  const device = facts.rdma.devices.value.find((one) => one.name === name)
  const gid = device?.gids.find((one) => one.index === jacclGidIndex)
  const found = gid === undefined ? null : ipv4OfGid(gid)
  const wanted = end.ipv4.map((ip) => ip.address)
  if (found !== null && wanted.includes(found))
    return {
      ...pass([facts.name], `${name} of ${facts.name} has ${found} at GID ${jacclGidIndex}`),
      cable,
    }
  if (gid === undefined && device?.gidsComplete !== true)
    return {
      machines: [facts.name],
      cable,
      level: 'unknown',
      evidence: `${facts.name}: the addresses of ${name} were not printed to their end`,
      next: `Run "ibv_devinfo -v -d ${name}" on ${facts.name}.`,
    }
  const service = facts.services.known
    ? facts.services.value.find((one) => one.device === interfaceName)
    : undefined
  const elsewhere = device?.gids.find((one) => wanted.includes(ipv4OfGid(one) ?? '-'))
  const at = elsewhere === undefined ? 'nowhere' : `at GID ${elsewhere.index}`
  return {
    machines: [facts.name],
    cable,
    level: 'fail',
    evidence: `${name} of ${facts.name} has ${gid?.address ?? 'nothing'} at GID ${jacclGidIndex}; its IPv4 address ${wanted[0] ?? ''} is ${at}, and JACCL takes GID ${jacclGidIndex}`,
    next: `Switch the network service of ${interfaceName ?? 'the port'} off and on again and set its address anew.`,
    ...(service === undefined
      ? {}
      : {
          fix: {
            machine: facts.name,
            summary: `switch the service "${service.name}" of ${facts.name} off and on`,
            commands: ['off', 'on'].map((state) => ({
              argv: ['networksetup', '-setnetworkserviceenabled', service.name, state],
              admin: true,
            })),
            undo: [],
            lasting: 'the service ends up as it was; nothing is left to undo',
          },
        }),
  }
}

export const jacclBuildCheck: Check = {
  id: 'jaccl-build',
  number: 23,
  title: 'MLX was built with JACCL',
  cites: ['kb#2043', 'kb#2103'],
  after: ['system', 'thunderbolt-5', 'versions'],
  examine: (input) =>
    macs(input).flatMap((facts) => {
      if (!facts.runtime.known) return []
      const { mlx, backends } = facts.runtime.value
      if (backends.includes('jaccl'))
        return [pass([facts.name], `MLX ${mlx} on ${facts.name} holds JACCL`)]
      return [
        {
          machines: [facts.name],
          level: 'warn' as const,
          evidence: `MLX ${mlx} on ${facts.name} was built without JACCL: its package is for a macOS before 26.2`,
          next: `Run "bushel setup" on ${facts.name} again, now that it runs this macOS.`,
        },
      ]
    }),
}
