// A world of ranks that share layers: which backend can hold it, and what its collectives cost. JACCL
// wants RDMA between every pair, or around a ring; a Mac takes part in one such world at a time.
import type { Constants } from '../cost/constants.ts'
import { type AllReduceModel, type CollectiveRegime, allReduceModel } from '../cost/links.ts'
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

function slowestLink(
  cluster: Cluster,
  pairs: readonly (readonly [number, number])[],
): number | null {
  let slowest = Infinity
  for (const [a, b] of pairs) {
    const link = cluster.link(a, b)
    if (link === null) return null
    slowest = Math.min(slowest, link.bytesPerSecond)
  }
  return slowest
}

function longestLatency(cluster: Cluster, pairs: readonly (readonly [number, number])[]): number {
  return Math.max(0, ...pairs.map(([a, b]) => cluster.link(a, b)?.latencySeconds ?? 0))
}

/** A closed walk through all members over links that pass `usable`; the order given is tried first. */
export function findRing(
  members: readonly number[],
  usable: (a: number, b: number) => boolean,
): number[] | null {
  const start = members[0]
  if (start === undefined) return null
  if (members.length === 2) return usable(start, members[1] ?? start) ? [...members] : null
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

/** A search that takes longer than this would find a ring that nobody cabled on purpose. */
const ringStepsMax = 2000

export function formWorld(
  cluster: Cluster,
  members: readonly number[],
  constants: Constants,
): World | null {
  const ids = new Set(members.map((index) => cluster.machines[index]?.machine.id))
  const measured = (backend: 'ring' | 'jaccl') =>
    cluster.worlds.find(
      (world) =>
        world.backend === backend &&
        world.machines.length === ids.size &&
        world.machines.every((machine) => ids.has(machine)),
    )?.measurement
  const busy = members.some((index) => cluster.machines[index]?.machine.inJacclWorld === true)
  const closed = (ring: readonly number[]): [number, number][] =>
    ring.map((member, position) => [member, ring[(position + 1) % ring.length] ?? member])
  if (!busy) {
    const pairs = members.flatMap((a, position) =>
      members.slice(position + 1).map((b) => [a, b] as const),
    )
    const mesh = members.length <= meshRanksMax && isMesh(cluster, members)
    const ring = mesh ? null : findRing(members, (a, b) => cluster.link(a, b)?.class === 'rdma')
    const bytesPerSecond = mesh
      ? slowestLink(cluster, pairs)
      : ring === null
        ? null
        : slowestLink(cluster, closed(ring))
    if (bytesPerSecond !== null) {
      const measurement = measured('jaccl')
      return {
        members: ring ?? members,
        backend: 'jaccl',
        measured: measurement !== undefined,
        allReduce: (regime) =>
          allReduceModel({
            ranks: members.length,
            transport: mesh ? 'mesh' : 'ring',
            regime,
            bytesPerSecond,
            constants,
            measurement,
          }),
      }
    }
  }
  const ring = findRing(members, (a, b) => cluster.link(a, b) !== null)
  if (ring === null) return null
  const bytesPerSecond = slowestLink(cluster, closed(ring))
  if (bytesPerSecond === null) return null
  const measurement = measured('ring')
  return {
    members: ring,
    backend: 'ring',
    measured: measurement !== undefined,
    allReduce: (regime) =>
      allReduceModel({
        ranks: members.length,
        transport: 'tcp-ring',
        regime,
        bytesPerSecond,
        latencySeconds: longestLatency(cluster, closed(ring)),
        constants,
        measurement,
      }),
  }
}
