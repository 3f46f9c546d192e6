// Checks 10 and 11: the port is out of the bridge and has an IPv4 address of its own.
import type { Unknown } from '../../machine-facts/fact.ts'
import { isLinkLocal, subnetOf, subnetsOverlap } from '../../machine-facts/ipv4.ts'
import { type Check, type DoctorInput, type Observation, cannotTell, pass } from '../finding.ts'
import { addressFix, bridgeFix } from '../network-fixes.ts'
import { type EndSubject, cableEnds } from './subjects.ts'

export const bridgeCheck: Check = {
  id: 'bridge',
  number: 10,
  title: 'the port is not part of the Thunderbolt Bridge',
  cites: ['kb#2016'],
  after: ['thunderbolt-5', 'peer-cabled'],
  afterAtPeer: ['thunderbolt-5'],
  examine: (input) => cableEnds(input).map(bridgeFinding),
}

const outOfBridge =
  'System Settings → Network → … → Manage Virtual Interfaces → delete Thunderbolt Bridge; then Add Service for each Thunderbolt port.'

function bridgeFinding(subject: EndSubject): Observation {
  const { cable, facts, interfaceName } = subject
  if (interfaceName === null) return { ...cannotTell(facts.name, endWhy(subject)), cable }
  if (!facts.interfaces.known) return { ...cannotTell(facts.name, facts.interfaces.why), cable }
  const bridge = facts.interfaces.value.find((one) => one.members.includes(interfaceName))
  const own = subject.interface?.ipv4 ?? []
  if (bridge !== undefined)
    return {
      machines: [facts.name],
      cable,
      // A member with an address of its own has been seen to work; one without never does.
      level: own.length > 0 ? 'warn' : 'fail',
      evidence: `${interfaceName} of ${facts.name} is a member of ${bridge.name}${own.length > 0 ? `, though it has ${own[0]?.address}` : ' and has no address of its own'}`,
      next: outOfBridge,
      fix: bridgeFix({ machine: facts.name, bridge: bridge.name, interface: interfaceName }),
    }
  const configured = facts.bridgesConfigured.known
    ? facts.bridgesConfigured.value.find((one) => one.members.includes(interfaceName))
    : undefined
  if (configured !== undefined)
    return {
      machines: [facts.name],
      cable,
      level: 'warn',
      evidence: `${interfaceName} of ${facts.name} is out of ${configured.name} now, but the settings put it back at the next start`,
      next: outOfBridge,
    }
  return { ...pass([facts.name], `${interfaceName} of ${facts.name} is in no bridge`), cable }
}

const endWhy = ({ end }: EndSubject): Unknown =>
  end.interface.known
    ? { kind: 'not-printed', detail: 'the interface of the port is not listed' }
    : end.interface.why

export const addressCheck: Check = {
  id: 'address',
  number: 11,
  title: 'the port has an IPv4 address of its own',
  cites: ['kb#2015', 'kb#2014'],
  after: ['thunderbolt-5', 'peer-cabled', 'bridge'],
  afterAtPeer: ['thunderbolt-5'],
  examine: (input) => cableEnds(input).map((subject) => addressFinding(subject, input)),
}

function addressFinding(subject: EndSubject, input: DoctorInput): Observation {
  const { cable, facts, interfaceName, other } = subject
  const machines = [facts.name]
  if (!facts.interfaces.known) return { ...cannotTell(facts.name, facts.interfaces.why), cable }
  const listed = subject.interface
  const at = `${interfaceName ?? 'the port'} of ${facts.name}`
  if (listed === null) return { ...cannotTell(facts.name, endWhy(subject)), cable }
  const fixed = addressFix(input, subject)
  const say = (level: 'fail' | 'warn', evidence: string): Observation => ({
    machines,
    cable,
    level,
    evidence,
    next: fixed === null ? 'Give the port a manual IPv4 address.' : fixed.next,
    ...(fixed === null ? {} : { fix: fixed.fix }),
  })
  if (listed.active.known && !listed.active.value)
    return {
      machines,
      cable,
      level: 'fail',
      evidence: `${at} is inactive although a Mac is plugged in`,
      next: 'Unplug the cable, plug it in again, and look whether its network service is switched on.',
    }
  const [ip] = listed.ipv4
  if (ip === undefined)
    return listed.complete
      ? say('fail', `${at} has no IPv4 address`)
      : cannotTell(facts.name, { kind: 'not-printed', detail: `the listing of ${at} breaks off` })
  if (isLinkLocal(ip.address))
    return say(
      'warn',
      `${at} has the self-assigned ${ip.address}, which comes late and changes on every replug`,
    )
  const twin = facts.interfaces.value.find(
    (one) =>
      one.name !== listed.name &&
      one.kind !== 'loopback' &&
      one.ipv4.some((theirs) => subnetsOverlap({ a: ip, b: theirs })),
  )
  if (twin !== undefined)
    return say(
      'fail',
      `${at} and ${twin.name} are both in ${subnetOf(ip)}; every cable needs a subnet of its own`,
    )
  if (other.ipv4.length > 0 && !other.ipv4.some((theirs) => subnetOf(theirs) === subnetOf(ip)))
    return say(
      'fail',
      `${at} is in ${subnetOf(ip)}, the other end on ${other.machine} in ${other.ipv4.map(subnetOf).join(', ')}`,
    )
  const service = facts.services.known
    ? facts.services.value.find((one) => one.device === listed.name)
    : undefined
  if (service?.addressing.known === true && service.addressing.value.kind === 'dhcp')
    return say(
      'warn',
      `the service "${service.name}" of ${facts.name} asks for its address by DHCP, so ${ip.address} can change by itself`,
    )
  return { ...pass(machines, `${at} has ${ip.address}/${ip.prefixLength}`), cable }
}
