// Every way between two machines: Thunderbolt cables, and networks on which both have an address.
import { type Fact, known, unknown } from '../machine-facts/fact.ts'
import { isLinkLocal, isLoopback, subnetOf } from '../machine-facts/ipv4.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { InterfaceKind, NetworkInterface } from '../machine-facts/network.ts'
import type { Cable, CableEnd } from './cables.ts'
import { type RdmaVerdict, rdmaVerdict } from './rdma-verdict.ts'

export type LinkClass = 'rdma' | 'thunderbolt-ip' | 'ethernet' | 'wifi'

export interface LinkEnd {
  readonly machine: string
  readonly interface: string | null
  readonly receptacle: number | null
  readonly rdmaDevice: string | null
  /** The address to use on this link, where it has one. */
  readonly address: string | null
}

export interface Link {
  readonly class: LinkClass
  readonly ends: readonly [LinkEnd, LinkEnd]
  readonly gbps: Fact<number>
  /** A cable is seen by the machines themselves; a shared subnet is only very likely one network. */
  readonly proof: 'cable' | 'same-subnet'
  readonly via: readonly string[]
  readonly rdma: RdmaVerdict | null
}

export function linksBetween(
  machines: readonly MachineFacts[],
  cables: readonly Cable[],
): readonly Link[] {
  const byCable = cables.map((cable) => cableLink(cable, machines))
  const bySubnet = machines.flatMap((a, index) =>
    machines.slice(index + 1).flatMap((b) => subnetLinks(a, b)),
  )
  const cabled = new Set(byCable.map(endsKey))
  return [...byCable, ...bySubnet.filter((link) => !cabled.has(endsKey(link)))]
}

const endsKey = (link: Link): string =>
  link.ends.map((end) => `${end.machine}/${end.interface ?? '?'}`).join(' ')

function cableLink(cable: Cable, machines: readonly MachineFacts[]): Link {
  const rdma = rdmaVerdict(cable, machines)
  const [a, b] = cable.ends
  const shared = sharedSubnet(a, b)
  const end = (one: CableEnd, address: string | null): LinkEnd => ({
    machine: one.machine,
    interface: one.interface.known ? one.interface.value : null,
    receptacle: one.receptacle.known ? one.receptacle.value : null,
    rdmaDevice: one.rdmaDevice.known ? one.rdmaDevice.value : null,
    address,
  })
  return {
    class: rdma.usable ? 'rdma' : 'thunderbolt-ip',
    ends: [end(a, shared?.[0] ?? null), end(b, shared?.[1] ?? null)],
    gbps: cable.gbps,
    proof: 'cable',
    via: cable.via,
    rdma,
  }
}

/** Addresses of both ends that lie in one subnet: only those can speak over the cable without a router. */
function sharedSubnet(a: CableEnd, b: CableEnd): readonly [string, string] | null {
  for (const mine of a.ipv4)
    for (const theirs of b.ipv4)
      if (subnetOf(mine) === subnetOf(theirs) && mine.address !== theirs.address)
        return [mine.address, theirs.address]
  return null
}

function subnetLinks(a: MachineFacts, b: MachineFacts): readonly Link[] {
  const links: Link[] = []
  for (const mine of usableInterfaces(a))
    for (const theirs of usableInterfaces(b)) {
      const shared = addressesInOneSubnet(mine.one, theirs.one)
      if (shared === null) continue
      links.push({
        class: slowerClass(mine.kind, theirs.kind),
        ends: [
          { ...bareEnd, machine: a.name, interface: mine.one.name, address: shared[0] },
          { ...bareEnd, machine: b.name, interface: theirs.one.name, address: shared[1] },
        ],
        gbps: slowerSpeed(mine.one, theirs.one),
        proof: 'same-subnet',
        via: [],
        rdma: null,
      })
    }
  return links
}

const bareEnd = { receptacle: null, rdmaDevice: null } as const

type Medium = 'thunderbolt' | 'ethernet' | 'wifi'

interface UsableInterface {
  readonly one: NetworkInterface
  readonly kind: Medium
}

/** Tunnels and virtual networks are left out: they look like one network and run over another. */
function usableInterfaces(facts: MachineFacts): readonly UsableInterface[] {
  if (!facts.interfaces.known) return []
  const all = facts.interfaces.value
  return all.flatMap((one) => {
    const kind = mediumOf(one, all)
    const down = one.active.known && !one.active.value
    return kind === null || down ? [] : [{ one, kind }]
  })
}

/** A bridge is as good as what it holds, if that is all of one kind. */
function mediumOf(one: NetworkInterface, all: readonly NetworkInterface[]): Medium | null {
  const medium = (kind: InterfaceKind): Medium | null =>
    kind === 'thunderbolt' || kind === 'ethernet' || kind === 'wifi' ? kind : null
  if (one.kind !== 'bridge') return medium(one.kind)
  const kinds = new Set(
    one.members.map((name) => all.find((member) => member.name === name)?.kind ?? 'unknown'),
  )
  const [only] = kinds
  return kinds.size === 1 && only !== undefined ? medium(only) : null
}

function addressesInOneSubnet(
  a: NetworkInterface,
  b: NetworkInterface,
): readonly [string, string] | null {
  const usable = (address: string): boolean => !isLinkLocal(address) && !isLoopback(address)
  for (const mine of a.ipv4)
    for (const theirs of b.ipv4)
      if (
        usable(mine.address) &&
        mine.address !== theirs.address &&
        subnetOf(mine) === subnetOf(theirs)
      )
        return [mine.address, theirs.address]
  return null
}

function slowerClass(a: Medium, b: Medium): LinkClass {
  if (a === 'wifi' || b === 'wifi') return 'wifi'
  return a === 'ethernet' || b === 'ethernet' ? 'ethernet' : 'thunderbolt-ip'
}

function slowerSpeed(a: NetworkInterface, b: NetworkInterface): Fact<number> {
  return a.speedMbps.known && b.speedMbps.known
    ? known(Math.min(a.speedMbps.value, b.speedMbps.value) / 1000)
    : unknown('not-printed', 'the speed of this network is not printed on both ends')
}
