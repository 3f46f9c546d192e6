// Where the ranks of a JACCL world first meet when no control plane carries the exchange: one address of
// rank 0 that every other rank can reach, on the steadiest network there is.
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { Link, LinkClass } from '../topology/links.ts'

export interface MeetingPoint {
  readonly machine: string
  readonly address: string
  readonly over: LinkClass
}

/** Ethernet first: it does not care about Thunderbolt, which may be renegotiating just then. */
const preference: readonly LinkClass[] = ['ethernet', 'wifi', 'thunderbolt-ip', 'rdma']

/** The address of `machine` that all others share a network with; null when there is none. */
export function meetingPoint(
  machine: string,
  others: readonly string[],
  links: readonly Link[],
): MeetingPoint | null {
  const found = links.flatMap((link) => {
    const mine = link.ends.find((end) => end.machine === machine)
    const theirs = link.ends.find((end) => end.machine !== machine)
    if (mine?.address == null || theirs === undefined || !others.includes(theirs.machine)) return []
    return [{ address: mine.address, over: link.class, peer: theirs.machine }]
  })
  for (const over of preference) {
    const candidates = found.filter((one) => one.over === over)
    for (const { address } of candidates) {
      const reached = new Set(
        candidates.filter((one) => one.address === address).map((one) => one.peer),
      )
      if (others.every((other) => reached.has(other))) return { machine, address, over }
    }
  }
  return null
}

/** Machines that stand still and hang on a wire make the better rank 0; ties keep the given order. */
export function bestCoordinator(
  machines: readonly MachineFacts[],
  links: readonly Link[],
): string | null {
  const names = machines.map((one) => one.name)
  const ranked = machines
    .flatMap((facts) => {
      const point = meetingPoint(
        facts.name,
        names.filter((name) => name !== facts.name),
        links,
      )
      return point === null ? [] : [{ facts, point }]
    })
    .toSorted(
      (a, b) =>
        preference.indexOf(a.point.over) - preference.indexOf(b.point.over) ||
        Number(isLaptop(a.facts)) - Number(isLaptop(b.facts)),
    )
  return ranked[0]?.facts.name ?? null
}

export function isLaptop(facts: MachineFacts): boolean {
  return facts.hardware.modelName.known && facts.hardware.modelName.value.startsWith('MacBook')
}
