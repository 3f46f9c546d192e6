// One small subnet of its own for every cable. Addresses that are already right stay; others are counted
// up from 192.168.0.0 in steps of four, as MLX's configurator does, but past every network in use here.
import {
  type Ipv4Address,
  ipv4ToNumber,
  isLinkLocal,
  numberToIpv4,
  subnetOf,
  subnetsOverlap,
} from '../machine-facts/ipv4.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { Cable, CableEnd } from '../topology/cables.ts'

export interface CableAddresses {
  readonly cable: Cable
  readonly action: 'keep' | 'assign'
  /** In the order of the cable's ends. */
  readonly ends: readonly [Ipv4Address, Ipv4Address]
}

export const cablePrefixLength = 30
const poolStart = '192.168.0.0'
const poolEnd = '192.168.255.255'

export type AddressPlan =
  | { readonly kind: 'planned'; readonly cables: readonly CableAddresses[] }
  | { readonly kind: 'pool-empty'; readonly cable: Cable }

export function planAddresses(
  machines: readonly MachineFacts[],
  cables: readonly Cable[],
): AddressPlan {
  const kept = new Map<Cable, readonly [Ipv4Address, Ipv4Address]>()
  for (const cable of cables) {
    const pair = usablePair(cable)
    const taken =
      pair !== null && [...kept.values()].flat().some((ip) => subnetsOverlap({ a: ip, b: pair[0] }))
    if (pair !== null && !taken && !usedElsewhere({ machines, cable, address: pair[0] }))
      kept.set(cable, pair)
  }
  const busy: Ipv4Address[] = [...kept.values()].map((pair) => pair[0])
  let next = ipv4ToNumber(poolStart) ?? 0
  const last = ipv4ToNumber(poolEnd) ?? 0
  const planned: CableAddresses[] = []
  for (const cable of cables) {
    const pair = kept.get(cable)
    if (pair !== undefined) {
      planned.push({ cable, action: 'keep', ends: pair })
      continue
    }
    while (next <= last && isTaken({ machines, cables, busy, subnet: next })) next += 4
    if (next > last) return { kind: 'pool-empty', cable }
    const address = (offset: number): Ipv4Address => ({
      address: numberToIpv4(next + offset),
      prefixLength: cablePrefixLength,
    })
    planned.push({ cable, action: 'assign', ends: [address(1), address(2)] })
    next += 4
  }
  return { kind: 'planned', cables: planned }
}

/** Both ends in one subnet, with addresses that were set by hand: self-assigned ones change on replug. */
function usablePair(cable: Cable): readonly [Ipv4Address, Ipv4Address] | null {
  const [a, b] = cable.ends
  for (const mine of a.ipv4)
    for (const theirs of b.ipv4)
      if (
        mine.address !== theirs.address &&
        !isLinkLocal(mine.address) &&
        subnetOf(mine) === subnetOf(theirs)
      )
        return [mine, theirs]
  return null
}

function isTaken(pool: {
  readonly machines: readonly MachineFacts[]
  readonly cables: readonly Cable[]
  readonly busy: readonly Ipv4Address[]
  readonly subnet: number
}): boolean {
  const wanted = { address: numberToIpv4(pool.subnet), prefixLength: cablePrefixLength }
  if (pool.busy.some((ip) => subnetsOverlap({ a: ip, b: wanted }))) return true
  // Addresses on ports that get a new one anyway do not stand in the way.
  const replaced = new Set(pool.cables.flatMap((cable) => cable.ends.map(portKey)))
  return pool.machines.some((facts) =>
    otherAddresses(facts, replaced).some((ip) => subnetsOverlap({ a: ip, b: wanted })),
  )
}

function usedElsewhere(at: {
  readonly machines: readonly MachineFacts[]
  readonly cable: Cable
  readonly address: Ipv4Address
}): boolean {
  const own = new Set(at.cable.ends.map(portKey))
  const names = at.cable.ends.map((end) => end.machine)
  return at.machines
    .filter((facts) => names.includes(facts.name))
    .some((facts) =>
      otherAddresses(facts, own).some((ip) => subnetsOverlap({ a: ip, b: at.address })),
    )
}

const portKey = (end: CableEnd): string =>
  JSON.stringify([end.machine, end.interface.known ? end.interface.value : null])

function otherAddresses(facts: MachineFacts, without: ReadonlySet<string>): readonly Ipv4Address[] {
  if (!facts.interfaces.known) return []
  return facts.interfaces.value
    .filter(
      (one) => one.kind !== 'loopback' && !without.has(JSON.stringify([facts.name, one.name])),
    )
    .flatMap((one) => one.ipv4)
}
