// Puts what was measured on this cluster in place of the table's figures, leaving out what has gone
// stale and saying why.
import type { MachineId } from '../../ids.ts'
import type { MeasuredWorld, PlanLink, PlanMachine } from '../types.ts'
import {
  type MeasuredHop,
  type MeasuredMachine,
  type MeasuredWorldRecord,
  type ProbeVersions,
  combineVersions,
  staleReasons,
} from './measured.ts'

export interface Measurements {
  readonly machines: readonly MeasuredMachine[]
  readonly worlds: readonly MeasuredWorldRecord[]
  readonly hops: readonly MeasuredHop[]
}

/** How things are now, to compare with how they were. */
export interface Present {
  readonly versions: (machine: MachineId) => ProbeVersions | null
  /** The cables or routes between these machines; null when unknown. */
  readonly cables: (machines: readonly MachineId[]) => string | null
}

export interface MeasuredCluster {
  readonly machines: readonly PlanMachine[]
  readonly links: readonly PlanLink[]
  readonly worlds: readonly MeasuredWorld[]
  readonly stale: readonly string[]
}

export function applyMeasurements(
  cluster: { readonly machines: readonly PlanMachine[]; readonly links: readonly PlanLink[] },
  measurements: Measurements,
  present: Present,
): MeasuredCluster {
  const stale: string[] = []
  const nameOf = (id: MachineId): string =>
    cluster.machines.find((machine) => machine.id === id)?.name ?? id
  const holds = (
    measured: MeasuredMachine | MeasuredWorldRecord | MeasuredHop,
    members: readonly MachineId[],
  ): boolean => {
    const cables = measured.cables === null ? null : present.cables(members)
    const reasons = new Set<string>()
    const running: ProbeVersions[] = []
    for (const member of members) {
      const versions = present.versions(member)
      if (versions === null) reasons.add(`${nameOf(member)} does not say what it runs`)
      else running.push(versions)
    }
    if (reasons.size === 0)
      for (const reason of staleReasons(measured, { versions: combineVersions(running), cables }))
        reasons.add(reason)
    if (reasons.size > 0)
      stale.push(
        `the measurement of ${members.map(nameOf).join(' and ')} no longer counts: ${[...reasons].join(', ')}; run "bushel probe"`,
      )
    return reasons.size === 0
  }
  const known = measurements.machines.filter((measured) => holds(measured, [measured.machine]))
  const hops = measurements.hops.filter((measured) =>
    holds(measured, [measured.source, measured.target]),
  )
  const worlds = measurements.worlds.filter((measured) => holds(measured, measured.machines))
  const hopOf = (link: PlanLink): number | undefined =>
    hops.find(
      ({ source, target }) =>
        (source === link.source && target === link.target) ||
        (source === link.target && target === link.source),
    )?.value.hopSeconds
  return {
    machines: cluster.machines.map((machine) => {
      const measured = known.find((entry) => entry.machine === machine.id)
      return measured === undefined ? machine : { ...machine, measurement: measured.value }
    }),
    links: cluster.links.map((link) => {
      const hop = hopOf(link)
      return hop === undefined ? link : { ...link, figures: { ...link.figures, hopSeconds: hop } }
    }),
    worlds: worlds.map(({ machines, backend, value }) => ({
      machines,
      backend,
      measurement: value,
    })),
    stale,
  }
}
