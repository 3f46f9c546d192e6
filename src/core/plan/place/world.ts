// A world of ranks that share layers: which backend can hold it, and what its collectives cost. JACCL
// wants RDMA between every pair, or around a ring; a Mac takes part in one such world at a time.
import type { Constants } from '../cost/constants.ts'
import {
  type AllReduceModel,
  type AllReduceTransport,
  type CollectiveRegime,
  type LinkFigures,
  allReduceModel,
} from '../cost/links.ts'
import type { Cluster } from './cluster.ts'

/** JACCL's own limit on a mesh. */
const meshRanksMax = 8

export interface World {
  readonly members: readonly number[]
  readonly backend: 'ring' | 'jaccl'
  readonly allReduce: (regime: CollectiveRegime) => AllReduceModel
  /** Measured on this cluster: the regime is no question then. */
  readonly measured: boolean
}

function isMesh(cluster: Cluster, members: readonly number[]): boolean {
  for (const [position, a] of members.entries())
    for (const b of members.slice(position + 1))
      if (cluster.link(a, b)?.class !== 'rdma') return false
  return true
}

/** A closed walk through all members over links that pass `usable`; the order given is tried first. */
export function findRing(
  members: readonly number[],
  usable: (a: number, b: number) => boolean,
): number[] | null {
  const start = members[0]
  if (start === undefined) return null
  if (members.length === 2) return usable(start, members[1] ?? start) ? [...members] : null
  const lonely = members.some((one) => {
    let neighbours = 0
    for (const other of members) if (other !== one && usable(one, other)) neighbours++
    return neighbours < 2
  })
  if (lonely) return null
  const path = [start]
  const left = new Set(members.slice(1))
  let steps = 0
  const extend = (): boolean => {
    if (steps++ > ringStepsMax) return false
    const here = path.at(-1) ?? start
    if (left.size === 0) return usable(here, start)
    // A copy: entries that are put back must not come round again.
    for (const next of Array.from(left)) {
      if (!usable(here, next)) continue
      left.delete(next)
      path.push(next)
      if (extend()) return true
      path.pop()
      left.add(next)
    }
    return false
  }
  return extend() ? path : null
}

/** Every ring of eight is tried; larger ones that take longer nobody cabled on purpose. */
const ringStepsMax = 14_000

interface Ring {
  readonly members: readonly number[]
  /** Of its slowest link. */
  readonly bytesPerSecond: number
  /** Of its link with the longest. */
  readonly latencySeconds: number
}

function pairLinks(cluster: Cluster, members: readonly number[]): (LinkFigures | null)[] {
  return members.flatMap((a, position) =>
    members.slice(position + 1).map((b) => cluster.link(a, b)),
  )
}

const descending = (values: Iterable<number>): number[] =>
  [...new Set(values)].sort((a, b) => b - a)

/** The rings that no other beats both in rate and in latency, quickest first. */
function bestRings(
  cluster: Cluster,
  members: readonly number[],
  passes: (link: LinkFigures) => boolean,
): Ring[] {
  const links = pairLinks(cluster, members).flatMap((link) =>
    link !== null && passes(link) ? [link] : [],
  )
  const rates = descending(links.map((link) => link.bytesPerSecond))
  const latencies = descending(links.map((link) => link.latencySeconds)).reverse()
  const rings: Ring[] = []
  for (const latencySeconds of latencies)
    for (const bytesPerSecond of rates) {
      if (bytesPerSecond <= (rings.at(-1)?.bytesPerSecond ?? 0)) break
      const ring = findRing(members, (a, b) => {
        const link = cluster.link(a, b)
        return (
          link !== null &&
          passes(link) &&
          link.bytesPerSecond >= bytesPerSecond &&
          link.latencySeconds <= latencySeconds
        )
      })
      if (ring === null) continue
      rings.push({ members: ring, bytesPerSecond, latencySeconds })
      break
    }
  return rings
}

/**
 * The worlds that these machines can form and that no other of theirs beats: usually one, JACCL before
 * a TCP ring. Where links differ, one may answer sooner and another move more.
 */
export function formWorlds(
  cluster: Cluster,
  members: readonly number[],
  options: { readonly constants: Constants; readonly regime: CollectiveRegime },
): World[] {
  const { constants } = options
  const ids = new Set(members.map((index) => cluster.machines[index]?.machine.id))
  const worldOf = (transport: AllReduceTransport, ring: Ring): World => {
    const backend = transport === 'tcp-ring' ? 'ring' : 'jaccl'
    const measurement = cluster.worlds.find(
      (world) =>
        world.backend === backend &&
        world.machines.length === ids.size &&
        world.machines.every((machine) => ids.has(machine)),
    )?.measurement
    const { bytesPerSecond, latencySeconds } = ring
    return {
      members: ring.members,
      backend,
      measured: measurement !== undefined,
      allReduce: (regime) =>
        allReduceModel({
          ranks: members.length,
          transport,
          regime,
          bytesPerSecond,
          latencySeconds: transport === 'tcp-ring' ? latencySeconds : 0,
          constants,
          measurement,
        }),
    }
  }
  const worlds: World[] = []
  if (members.every((index) => cluster.machines[index]?.machine.inJacclWorld !== true)) {
    const isRdma = (link: LinkFigures): boolean => link.class === 'rdma'
    if (members.length <= meshRanksMax && isMesh(cluster, members)) {
      const rates = pairLinks(cluster, members).map((link) => link?.bytesPerSecond ?? 0)
      worlds.push(
        worldOf('mesh', { members, bytesPerSecond: Math.min(...rates), latencySeconds: 0 }),
      )
    }
    for (const ring of bestRings(cluster, members, isRdma)) worlds.push(worldOf('ring', ring))
    // What was measured of JACCL is known; a ring that nobody measured is no better answer to it.
    if (worlds[0]?.measured === true) return worlds.slice(0, 1)
  }
  for (const ring of bestRings(cluster, members, () => true)) worlds.push(worldOf('tcp-ring', ring))
  return unbeaten(worlds, options.regime)
}

function unbeaten(worlds: readonly World[], regime: CollectiveRegime): World[] {
  const kept: { world: World; costs: AllReduceModel }[] = []
  for (const world of worlds) {
    const costs = world.allReduce(regime)
    const beaten = kept.some(
      (other) =>
        other.costs.latencySeconds <= costs.latencySeconds &&
        other.costs.secondsPerByte <= costs.secondsPerByte,
    )
    if (!beaten) kept.push({ world, costs })
  }
  return kept.map(({ world }) => world)
}
