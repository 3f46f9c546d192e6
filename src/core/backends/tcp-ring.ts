// A ring over TCP: the order of the ranks and the addresses they listen on. Each rank listens on the link
// it shares with the rank before it, so every hop can use the best link of its own pair.
import type { Link, LinkClass } from '../topology/links.ts'
import { findRing, ringWidth } from '../topology/shapes.ts'
import { countLinks } from '../topology/topology.ts'

export interface TcpRing {
  readonly order: readonly string[]
  /** By rank: where it accepts the rank before it. The same number of addresses for each. */
  readonly addresses: readonly (readonly string[])[]
  /** The slowest class of link that the ring uses; TCP has no use for RDMA on a cable. */
  readonly over: Exclude<LinkClass, 'rdma'>
}

/** Wider and wider choices: a ring on Thunderbolt alone is worth more than one with a Wi-Fi hop. */
const choices: readonly (readonly LinkClass[])[] = [
  ['rdma', 'thunderbolt-ip'],
  ['rdma', 'thunderbolt-ip', 'ethernet'],
  ['rdma', 'thunderbolt-ip', 'ethernet', 'wifi'],
]

const speedOrder: readonly LinkClass[] = ['rdma', 'thunderbolt-ip', 'ethernet', 'wifi']

export function findTcpRing(names: readonly string[], links: readonly Link[]): TcpRing | null {
  const usable = links.filter((link) => link.ends.every((end) => end.address !== null))
  for (const classes of choices) {
    const chosen = usable.filter((link) => classes.includes(link.class))
    const counts = countLinks(names, chosen)
    const ring = findRing(counts)
    if (ring === null) continue
    const order = ring.map((index) => names[index] ?? '')
    // Parallel connections pay where all hops have spare cables; mixed links get one each.
    const width = classes.length === 2 ? ringWidth(counts, ring) : 1
    const hops = order.map((name, rank) => {
      const before = order[(rank + order.length - 1) % order.length] ?? ''
      return linksOfPair(chosen, { name, before }).slice(0, width)
    })
    return {
      order,
      addresses: hops.map((hop, rank) => hop.map((link) => addressOf(link, order[rank] ?? ''))),
      over: slowest(hops.flat().map((link) => link.class)),
    }
  }
  return null
}

function linksOfPair(
  links: readonly Link[],
  pair: { readonly name: string; readonly before: string },
): readonly Link[] {
  const wanted = [pair.name, pair.before]
  return links
    .filter((link) => link.ends.every((end) => wanted.includes(end.machine)))
    .toSorted((a, b) => speedOrder.indexOf(a.class) - speedOrder.indexOf(b.class))
}

const addressOf = (link: Link, machine: string): string =>
  link.ends.find((end) => end.machine === machine)?.address ?? ''

function slowest(classes: readonly LinkClass[]): TcpRing['over'] {
  if (classes.includes('wifi')) return 'wifi'
  return classes.includes('ethernet') ? 'ethernet' : 'thunderbolt-ip'
}
