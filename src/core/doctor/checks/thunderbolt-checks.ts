// Checks 2, 5, 6, 7 and 8: ports, cables and what is seen at their other ends.
import type { MachineFacts } from '../../machine-facts/machine.ts'
import { thunderboltGeneration } from '../../machine-facts/thunderbolt.ts'
import type { Stranger } from '../../topology/cables.ts'
import { freePorts } from '../../topology/topology.ts'
import {
  type Check,
  type DoctorInput,
  type Observation,
  cannotTell,
  judge,
  pass,
} from '../finding.ts'
import { cableEnds, macs, portText } from './subjects.ts'

/** The speed of a Thunderbolt 5 link in both directions. */
const fullSpeedGbps = 80

export const thunderbolt5Check: Check = {
  id: 'thunderbolt-5',
  number: 2,
  title: 'the ports are Thunderbolt 5',
  cites: ['kb#309', 'kb#2004'],
  after: [],
  examine: (input) =>
    macs(input).map((facts) => {
      if (!facts.thunderbolt.known) return cannotTell(facts.name, facts.thunderbolt.why)
      const generation = thunderboltGeneration(facts.thunderbolt.value, facts.hardware.chip)
      return judge(facts.name, generation, (found) =>
        found === 5
          ? pass([facts.name], `${facts.name} has Thunderbolt 5`)
          : {
              machines: [facts.name],
              level: 'warn',
              evidence: `${facts.name} has Thunderbolt 4: RDMA is not possible on it, whatever rdma_ctl says`,
              next: 'Nothing to do: groups with this Mac use the TCP ring.',
              // Nothing about RDMA can be right on this Mac, and none of it is a fault.
              blocks: true,
            },
      )
    }),
}

export const peerCabledCheck: Check = {
  id: 'peer-cabled',
  number: 5,
  title: 'the Macs are cabled to each other',
  cites: ['kb#316', 'kb#2006'],
  after: [],
  examine: (input) => {
    const all = macs(input)
    if (all.length === 0) return []
    if (all.length < 2)
      return [
        {
          machines: all.map((one) => one.name),
          level: 'skip',
          evidence: 'cabling is checked where the facts of two Macs or more are at hand',
        },
      ]
    const blind = all.filter((facts) => !facts.thunderbolt.known)
    if (blind.length > 0)
      return blind.flatMap((facts) =>
        facts.thunderbolt.known ? [] : [cannotTell(facts.name, facts.thunderbolt.why)],
      )
    return [...cableFindings(input), ...pairFindings(input, all)]
  },
}

function cableFindings(input: DoctorInput): readonly Observation[] {
  return input.topology.cables.flatMap((cable) => {
    const machines = cable.ends.map((end) => end.machine)
    const [a, b] = cable.ends
    if (cable.seenFrom !== 'both')
      return [
        {
          machines,
          cable,
          level: 'warn' as const,
          evidence: `only ${cable.seenFrom[0]} reports the cable between ${portText(a)} and ${portText(b)}`,
          next: 'Unplug the cable at both ends, wait five seconds, and plug it in again.',
        },
      ]
    return []
  })
}

function pairFindings(input: DoctorInput, all: readonly MachineFacts[]): readonly Observation[] {
  const { thunderbolt } = input.topology
  const names = all.map((one) => one.name)
  const direct = (a: string, b: string): boolean =>
    input.topology.cables.some(
      (cable) =>
        cable.via.length === 0 &&
        [a, b].every((name) => cable.ends.some((end) => end.machine === name)),
    )
  const docked = input.topology.cables.filter(
    (cable) => cable.via.length > 0 && !direct(cable.ends[0].machine, cable.ends[1].machine),
  )
  const throughDocks = docked.map((cable) => ({
    machines: cable.ends.map((end) => end.machine),
    cable,
    level: 'fail' as const,
    evidence: `${cable.ends.map((end) => end.machine).join(' and ')} are joined through ${cable.via.join(', ')}, not by one cable`,
    next: `Run a Thunderbolt 5 cable straight from ${portText(cable.ends[0])} to ${portText(cable.ends[1])}.`,
  }))
  if (thunderbolt.mesh)
    return [
      ...throughDocks,
      ...(docked.length === 0 ? [pass(names, 'every pair of Macs is cabled')] : []),
    ]
  if (thunderbolt.ring !== null)
    return [...throughDocks, pass(names, `cabled in a ring: ${thunderbolt.ring.join(' → ')}`)]
  return [
    ...throughDocks,
    ...thunderbolt.missingPairs
      .filter((pair) => pair.every((name) => names.includes(name)))
      .map((pair) => nameless(input, pair) ?? missingPair(all, pair)),
  ]
}

/** Both ends see a Mac that is not named: it may be the other one, and a missing cable is not proven. */
function nameless(input: DoctorInput, pair: readonly [string, string]): Observation | null {
  const seen = pair.map((name) =>
    input.topology.strangers.find((one) => one.machine === name && !one.identityKnown),
  )
  if (seen.some((one) => one === undefined)) return null
  const texts = seen.flatMap((one) => {
    if (one === undefined) return []
    const port = one.receptacle.known ? ` at port ${one.receptacle.value}` : ''
    return [`${one.machine} sees a ${one.peerName}${port}`]
  })
  return {
    machines: pair,
    level: 'unknown',
    evidence: `${texts.join(' and ')}, without the identity that would tell whether they see each other`,
    next: 'Run "system_profiler SPThunderboltDataType -json" on both, and look for "domain_uuid_key".',
  }
}

function missingPair(all: readonly MachineFacts[], pair: readonly [string, string]): Observation {
  const free = pair.map((name) => {
    const facts = all.find((one) => one.name === name)
    const ports = facts === undefined ? [] : freePorts(facts)
    return ports.length === 0
      ? `${name} has no free port`
      : `${name} has port ${ports.join(', ')} free`
  })
  return {
    machines: pair,
    level: 'fail',
    evidence: `no Thunderbolt cable joins ${pair[0]} and ${pair[1]}; ${free.join(', ')}`,
    next: `Connect ${pair[0]} and ${pair[1]} with a Thunderbolt 5 cable.`,
    // The machines can well be joined to others.
    blocks: false,
  }
}

export const peerRdmaCheck: Check = {
  id: 'peer-rdma',
  number: 6,
  title: 'the Mac at the other end offers RDMA',
  cites: ['kb#2024'],
  after: ['system', 'thunderbolt-5', 'rdma-switch', 'rdma-devices', 'peer-cabled'],
  afterAtPeer: ['thunderbolt-5'],
  examine: (input) => [
    ...cableEnds(input)
      .filter(({ cable }) => cable.via.length === 0 && cable.seenFrom === 'both')
      .map(({ cable, end, other }) =>
        end.rdmaOffered.known
          ? offeredFinding({
              machines: [end.machine],
              seenFrom: other.machine,
              offered: end.rdmaOffered.value,
              name: end.machine,
              cable,
            })
          : { ...cannotTell(other.machine, end.rdmaOffered.why), cable },
      ),
    ...input.topology.strangers.flatMap(strangerFinding),
  ],
}

function offeredFinding(at: {
  readonly machines: readonly string[]
  readonly seenFrom: string
  readonly offered: boolean
  readonly name: string
  readonly cable?: Observation['cable']
}): Observation {
  const about = at.cable === undefined ? {} : { cable: at.cable }
  if (at.offered)
    return { ...pass(at.machines, `${at.seenFrom} sees RDMA offered by ${at.name}`), ...about }
  return {
    machines: at.machines,
    ...about,
    level: 'fail',
    evidence: `${at.seenFrom} sees no RDMA offered by ${at.name}`,
    next: `Enable RDMA on ${at.name}: start it in Recovery → Utilities → Terminal → "rdma_ctl enable" → restart.`,
  }
}

/** A Mac that is not among ours can still be seen to have RDMA on or off. */
function strangerFinding(stranger: Stranger): readonly Observation[] {
  if (stranger.via.length > 0 || !stranger.rdmaOffered.known) return []
  const port = stranger.receptacle.known ? ` at port ${stranger.receptacle.value}` : ''
  return [
    offeredFinding({
      machines: [stranger.machine],
      seenFrom: stranger.machine,
      offered: stranger.rdmaOffered.value,
      name: `the ${stranger.peerName}${port}`,
    }),
  ]
}

export const linkSpeedCheck: Check = {
  id: 'link-speed',
  number: 7,
  title: 'the cable runs at full speed',
  cites: ['kb#2017'],
  after: ['thunderbolt-5', 'peer-cabled'],
  examine: (input) =>
    input.topology.cables.map((cable) => {
      const machines = cable.ends.map((end) => end.machine)
      const where = `${portText(cable.ends[0])} to ${portText(cable.ends[1])}`
      if (!cable.gbps.known)
        return { ...cannotTell(machines.join('–'), cable.gbps.why), machines, cable }
      if (cable.gbps.value >= fullSpeedGbps)
        return { ...pass(machines, `${where} runs at ${cable.gbps.value} Gb/s`), cable }
      return {
        machines,
        cable,
        level: 'warn',
        evidence: `${where} runs at ${cable.gbps.value} Gb/s instead of ${fullSpeedGbps}`,
        next: 'Use a cable marked Thunderbolt 5, with no dock in between.',
      }
    }),
}

export const studioPortCheck: Check = {
  id: 'studio-port',
  number: 8,
  title: 'the cable is not in the Studio port beside Ethernet',
  cites: ['kb#2009'],
  after: ['peer-cabled'],
  examine: (input) =>
    cableEnds(input)
      .filter(
        ({ facts }) =>
          facts.hardware.modelName.known && facts.hardware.modelName.value === 'Mac Studio',
      )
      .map(({ cable, end, facts, interfaceName }) =>
        interfaceName === 'en2'
          ? {
              machines: [facts.name],
              cable,
              level: 'warn',
              evidence: `the cable of ${facts.name} is in ${portText(end)} (en2), beside Ethernet; RDMA is reported not to work there`,
              next: `Move the cable to another port${freeText(facts)}.`,
            }
          : { ...pass([facts.name], `${portText(end)} is not the one beside Ethernet`), cable },
      ),
}

function freeText(facts: MachineFacts): string {
  const ports = freePorts(facts).filter((port) => port !== 1)
  return ports.length === 0 ? '' : `, such as port ${ports[0]}`
}
