// Who is cabled to whom, put together from what both ends see. A port names its peer by the identity of
// the peer's port, so a cable is found from either end and proven when both name each other.
import { type Fact, isKnown, known, unknown } from '../machine-facts/fact.ts'
import type { Ipv4Address } from '../machine-facts/ipv4.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { thunderboltPortNumber } from '../machine-facts/network.ts'
import type { RdmaDevice } from '../machine-facts/rdma.ts'
import type { ThunderboltPeer, ThunderboltPort } from '../machine-facts/thunderbolt.ts'

export interface CableEnd {
  readonly machine: string
  /** The number on the case. */
  readonly receptacle: Fact<number>
  readonly interface: Fact<string>
  readonly rdmaDevice: Fact<string>
  readonly portState: Fact<RdmaPortState>
  readonly ipv4: readonly Ipv4Address[]
  /** Whether the machine at the *other* end sees RDMA offered here. */
  readonly rdmaOffered: Fact<boolean>
}

export type RdmaPortState = 'active' | 'down' | 'other'

export interface Cable {
  /** In the order of the machines, and the same for everybody: the one shared list of cables. */
  readonly ends: readonly [CableEnd, CableEnd]
  readonly gbps: Fact<number>
  /** Docks in between; one end may not see them, so both are asked. */
  readonly via: readonly string[]
  /** A cable that only one end reports is being plugged or pulled, or one listing is stale. */
  readonly seenFrom: 'both' | readonly [string]
}

/** A Mac on the other end of a cable that is not among the machines at hand. */
export interface Stranger {
  readonly machine: string
  readonly receptacle: Fact<number>
  readonly peerName: string
  readonly peerModel: Fact<string>
  readonly rdmaOffered: Fact<boolean>
  readonly via: readonly string[]
  /** Without the peer's identity it may well be one of ours. */
  readonly identityKnown: boolean
}

interface PortAt {
  readonly facts: MachineFacts
  readonly machineIndex: number
  readonly port: ThunderboltPort
  readonly interface: Fact<string>
}

export interface Cabling {
  readonly cables: readonly Cable[]
  readonly strangers: readonly Stranger[]
}

export function findCabling(machines: readonly MachineFacts[]): Cabling {
  const ports = machines.flatMap(portsOf)
  const byDomain = new Map<string, PortAt>()
  for (const at of ports) if (at.port.domainUuid.known) byDomain.set(at.port.domainUuid.value, at)
  const cables: Cable[] = []
  const strangers: Stranger[] = []
  const joined = new Set<PortAt>()
  for (const at of ports)
    for (const peer of at.port.peers) {
      const other = peer.domainUuid.known ? byDomain.get(peer.domainUuid.value) : undefined
      if (other === undefined || other.facts === at.facts)
        strangers.push({
          machine: at.facts.name,
          receptacle: at.port.receptacle,
          peerName: peer.name,
          peerModel: peer.model,
          rdmaOffered: peer.rdmaOffered,
          via: peer.via,
          identityKnown: peer.domainUuid.known,
        })
      else if (!joined.has(at) && !joined.has(other)) {
        joined.add(at)
        joined.add(other)
        cables.push(joinEnds({ at, other, peer }))
      }
    }
  return { cables, strangers }
}

/**
 * Ports in the order in which everyone counts them: machine by machine, and within one by the name of
 * the interface, as MLX's own configurator sorts them. The order decides which cable is "first" on both
 * of its ends, and a pair that disagrees about that hangs without an error.
 */
function portsOf(facts: MachineFacts, machineIndex: number): readonly PortAt[] {
  if (!facts.thunderbolt.known) return []
  const sortKey = (at: PortAt): string => (at.interface.known ? at.interface.value : '\uffff')
  return facts.thunderbolt.value
    .map((port) => ({ facts, machineIndex, port, interface: interfaceOf(facts, port) }))
    .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : sortKey(a) > sortKey(b) ? 1 : 0))
}

function interfaceOf(facts: MachineFacts, port: ThunderboltPort): Fact<string> {
  const { receptacle } = port
  if (!receptacle.known) return receptacle
  if (!facts.hardwarePorts.known) return facts.hardwarePorts
  const found = facts.hardwarePorts.value.find(
    (one) => thunderboltPortNumber(one.port) === receptacle.value,
  )
  return found === undefined
    ? unknown('not-printed', `networksetup lists no "Thunderbolt ${receptacle.value}"`)
    : known(found.device)
}

function joinEnds(found: {
  readonly at: PortAt
  readonly other: PortAt
  readonly peer: ThunderboltPeer
}): Cable {
  const { at, other, peer } = found
  const back = other.port.peers.find(
    (one) =>
      one.domainUuid.known &&
      at.port.domainUuid.known &&
      one.domainUuid.value === at.port.domainUuid.value,
  )
  const notSeen = unknown('not-printed', `${other.facts.name} does not report this cable`)
  const atEnd = endOf(at, back?.rdmaOffered ?? notSeen)
  const otherEnd = endOf(other, peer.rdmaOffered)
  return {
    ends: at.machineIndex <= other.machineIndex ? [atEnd, otherEnd] : [otherEnd, atEnd],
    gbps: slowerOf(at.port, other.port),
    via: peer.via.length > 0 ? peer.via : (back?.via ?? []),
    seenFrom: back === undefined ? [at.facts.name] : 'both',
  }
}

function endOf(at: PortAt, rdmaOffered: Fact<boolean>): CableEnd {
  const device = rdmaDeviceOf(at.facts, at.interface)
  return {
    machine: at.facts.name,
    receptacle: at.port.receptacle,
    interface: at.interface,
    rdmaDevice: device,
    portState: portStateOf(at.facts, device),
    ipv4: at.facts.interfaces.known
      ? (at.facts.interfaces.value.find((one) => isKnown(at.interface, one.name))?.ipv4 ?? [])
      : [],
    rdmaOffered,
  }
}

/** A device counts only when the machine lists it: on Thunderbolt 4 the name could be formed as well. */
function rdmaDeviceOf(facts: MachineFacts, name: Fact<string>): Fact<string> {
  if (!name.known) return name
  const wanted = `rdma_${name.value}`
  const { deviceNames, devices } = facts.rdma
  const listed = [
    ...(deviceNames.known ? deviceNames.value : []),
    ...(devices.known ? devices.value.map((one) => one.name) : []),
  ]
  if (listed.includes(wanted)) return known(wanted)
  if (!deviceNames.known && !devices.known) return deviceNames
  return unknown('not-applicable', `${facts.name} lists no RDMA device ${wanted}`)
}

function portStateOf(facts: MachineFacts, device: Fact<string>): Fact<RdmaPortState> {
  if (!device.known) return device
  if (!facts.rdma.devices.known) return facts.rdma.devices
  const found = facts.rdma.devices.value.find((one: RdmaDevice) => one.name === device.value)
  return found?.portState ?? unknown('not-printed', `ibv_devinfo does not list ${device.value}`)
}

/** The ends normally agree; when they do not, the link can be no faster than its slower end. */
function slowerOf(a: ThunderboltPort, b: ThunderboltPort): Fact<number> {
  const speeds = [a.speed, b.speed].flatMap((speed) =>
    speed.known && speed.value.kind === 'link' ? [speed.value.gbps] : [],
  )
  return speeds.length === 0
    ? unknown('not-printed', 'neither end prints the speed of the link')
    : known(Math.min(...speeds))
}
