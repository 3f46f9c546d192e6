// Machines that could be swapped without changing any plan: alike in every figure, linked alike to all
// others. Sets of machines then differ only in how many of each class they take, which makes clusters
// of few kinds small enough to try everything, however many machines there are.
import type { Cluster } from './cluster.ts'

export interface MachineClass {
  readonly machines: readonly number[]
  /** Whether a person wants all of them used. */
  readonly pinned: boolean
}

export function machineClasses(
  cluster: Cluster,
  eligible: readonly number[],
  pinned: readonly number[],
): MachineClass[] {
  const classes: { machines: number[]; pinned: boolean }[] = []
  for (const machine of eligible) {
    const known = classes.find(
      ({ machines, pinned: isPinned }) =>
        isPinned === pinned.includes(machine) &&
        interchangeable(cluster, eligible, machines[0] ?? machine, machine),
    )
    if (known === undefined) classes.push({ machines: [machine], pinned: pinned.includes(machine) })
    else known.machines.push(machine)
  }
  return classes
}

function interchangeable(
  cluster: Cluster,
  eligible: readonly number[],
  a: number,
  b: number,
): boolean {
  const [one, other] = [cluster.machines[a], cluster.machines[b]]
  if (one === undefined || other === undefined || one.signature !== other.signature) return false
  const sameWorlds = cluster.worlds.every(
    ({ machines }) => machines.includes(one.machine.id) === machines.includes(other.machine.id),
  )
  return (
    sameWorlds &&
    eligible.every(
      (third) =>
        third === a || third === b || cluster.linkKind(a, third) === cluster.linkKind(b, third),
    )
  )
}

/** How many sets there are: so many of each class, or none. */
export function setCount(classes: readonly MachineClass[]): number {
  return classes.reduce((product, { machines }) => product * (machines.length + 1), 1)
}

/** How many of each class, in every way that takes `size` machines in all. */
export function countsOfSize(classes: readonly MachineClass[], size: number): number[][] {
  const [first, ...others] = classes
  if (first === undefined) return size === 0 ? [[]] : []
  return Array.from({ length: Math.min(size, first.machines.length) + 1 }, (_, count) => count)
    .reverse()
    .flatMap((count) => countsOfSize(others, size - count).map((rest) => [count, ...rest]))
}

/** The first machines of each class. */
export function membersOf(classes: readonly MachineClass[], counts: readonly number[]): number[] {
  return classes
    .flatMap(({ machines }, index) => machines.slice(0, counts[index] ?? 0))
    .sort((a, b) => a - b)
}
