// Which sets of machines are worth trying. All of them while they are few; beyond that, sets grown
// from the machines that matter, by speed, by memory and by how well they are linked.
import { type MachineClass, countsOfSize, membersOf, setCount } from './classes.ts'
import type { Cluster } from './cluster.ts'

/**
 * Up to this many sets all are tried: eight machines of eight kinds, sixteen of three, or of two where
 * one machine or one link is unlike the rest.
 */
const everySetMax = 300

export const areFew = (classes: readonly MachineClass[]): boolean =>
  setCount(classes) <= everySetMax

/** Up to this many, every pair is tried. */
const everyPairMachinesMax = 24
/** Distinct machines to grow from, and sizes to try, in larger clusters. */
const seedsMax = 6

/** Sizes that are looked at in clusters too large for all, and shown in any. */
export function sizesUpTo(count: number): number[] {
  const sizes: number[] = []
  for (let size = 1; size <= count; size += size < 8 ? 1 : size < 16 ? 2 : 8) sizes.push(size)
  if (sizes.at(-1) !== count) sizes.push(count)
  return sizes
}

const signatureOf = (cluster: Cluster, index: number): number =>
  cluster.machines[index]?.signature ?? 0

/** The members and links of a set, without names: equal keys mean equal plans. */
function setKey(cluster: Cluster, members: readonly number[]): string {
  const machines = members.map((index) => signatureOf(cluster, index)).sort((a, b) => a - b)
  if (cluster.uniform) return machines.join(',')
  // Which kinds of link meet which kinds of machine, counted: the same counts, the same plan but for
  // cablings so odd that nobody would tell them apart either.
  const links: number[] = []
  for (const [position, a] of members.entries())
    for (let other = position + 1; other < members.length; other++) {
      const b = members[other] ?? a
      const left = signatureOf(cluster, a)
      const right = signatureOf(cluster, b)
      links.push(cluster.linkKind(a, b) * 1e6 + Math.min(left, right) * 1e3 + Math.max(left, right))
    }
  return `${machines.join(',')}#${links.sort((a, b) => a - b).join(',')}`
}

/** Every set there is, those alike once. */
function everySet(classes: readonly MachineClass[]): number[][] {
  const all = classes.reduce((sum, { machines }) => sum + machines.length, 0)
  const sets: number[][] = []
  for (let size = 1; size <= all; size++)
    for (const counts of countsOfSize(classes, size))
      if (
        classes.every(({ machines, pinned }, index) => !pinned || counts[index] === machines.length)
      )
        sets.push(membersOf(classes, counts))
  return sets
}

type Preference = (cluster: Cluster, members: readonly number[], candidate: number) => number

const preferences: readonly Preference[] = [
  (cluster, _, candidate) => cluster.machines[candidate]?.figures.memoryBytesPerSecond ?? 0,
  (cluster, _, candidate) => cluster.machines[candidate]?.machine.memoryFreeBytes ?? 0,
  (cluster, members, candidate) => {
    let quality = 0
    for (const member of members) {
      const link = cluster.link(member, candidate)
      if (link === null) continue
      quality += link.class === 'rdma' ? 1e12 : link.bytesPerSecond
    }
    return quality + (cluster.machines[candidate]?.figures.memoryBytesPerSecond ?? 0) / 1e3
  },
]

function grow(
  cluster: Cluster,
  seed: number,
  eligible: readonly number[],
  prefer: Preference,
): number[] {
  const order = [seed]
  const left = new Set(eligible.filter((index) => index !== seed))
  while (left.size > 0) {
    let best = -1
    let bestValue = -Infinity
    for (const candidate of left) {
      const value = prefer(cluster, order, candidate)
      if (value > bestValue) {
        best = candidate
        bestValue = value
      }
    }
    order.push(best)
    left.delete(best)
  }
  return order
}

/** Distinct machines, fastest and roomiest first in turn. */
function seeds(cluster: Cluster, eligible: readonly number[]): number[] {
  const distinct = new Map<number, number>()
  for (const index of eligible) {
    const key = signatureOf(cluster, index)
    if (!distinct.has(key)) distinct.set(key, index)
  }
  const list = [...distinct.values()]
  const by = (value: (index: number) => number): number[] =>
    [...list].sort((a, b) => value(b) - value(a))
  const fastest = by((index) => cluster.machines[index]?.figures.memoryBytesPerSecond ?? 0)
  const roomiest = by((index) => cluster.machines[index]?.machine.memoryFreeBytes ?? 0)
  const chosen = new Set<number>()
  for (let rank = 0; rank < list.length && chosen.size < seedsMax; rank++) {
    const fast = fastest[rank]
    const roomy = roomiest[rank]
    if (fast !== undefined) chosen.add(fast)
    if (roomy !== undefined && chosen.size < seedsMax) chosen.add(roomy)
  }
  return [...chosen]
}

/** Sets to try, each once, smallest first. `pinned` machines are in all of them. */
export function machineSets(cluster: Cluster, classes: readonly MachineClass[]): number[][] {
  if (areFew(classes)) return everySet(classes)
  const pinned = classes.flatMap((one) => (one.pinned ? one.machines : []))
  const eligible = classes.flatMap(({ machines }) => machines).sort((a, b) => a - b)
  const found = new Map<string, number[]>()
  const keep = (members: readonly number[]): void => {
    if (!pinned.every((index) => members.includes(index))) return
    const sorted = [...members].sort((a, b) => a - b)
    const key = pinned.length > 0 ? sorted.join(',') : setKey(cluster, sorted)
    if (!found.has(key)) found.set(key, sorted)
  }
  for (const index of eligible) keep([index])
  if (eligible.length <= everyPairMachinesMax)
    for (const [position, a] of eligible.entries())
      for (const b of eligible.slice(position + 1)) keep([a, b])
  const sizes = sizesUpTo(eligible.length)
  const from = pinned.length > 0 ? pinned.slice(0, 1) : seeds(cluster, eligible)
  for (const seed of from)
    for (const prefer of preferences) {
      const free = grow(cluster, seed, eligible, prefer)
      const order = [...pinned, ...free.filter((index) => !pinned.includes(index))]
      for (const size of sizes) if (size >= pinned.length) keep(order.slice(0, size))
    }
  return [...found.values()].sort((a, b) => a.length - b.length)
}
