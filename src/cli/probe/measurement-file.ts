// Where measurements of this cluster are kept, and how things are now, to tell whether they still hold.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writeFileAtomically } from '../../files/atomic-file.ts'
import { type MachineId, machineId } from '../../core/ids.ts'
import type { Fact } from '../../core/machine-facts/fact.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import type { Measurements, Present } from '../../core/plan/probe/apply.ts'
import type { ProbeVersions } from '../../core/plan/probe/measured.ts'
import { buildTopology } from '../../core/topology/topology.ts'
import { measurementFile } from '../../wire/plan-data.ts'
import { UserError } from '../command.ts'

export const nothingMeasured: Measurements = { machines: [], worlds: [], hops: [] }

export function measurementPath(home: string): string {
  return join(home, 'state', 'measurements.json')
}

/** Empty when nothing was measured yet; a damaged file is named, never silently ignored. */
export function readMeasurements(home: string): Measurements {
  const path = measurementPath(home)
  if (!existsSync(path)) return nothingMeasured
  try {
    return parseMeasurements(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error)
    throw new UserError(
      `${path} cannot be read (${why}); remove it and run "bushel probe" to measure again`,
      { cause: error },
    )
  }
}

/** When the newest of them was taken; 0 when there are none. */
export function newestMs({ machines, worlds, hops }: Measurements): number {
  return Math.max(0, ...[...machines, ...worlds, ...hops].map(({ atMs }) => atMs))
}

/** The same of what an earlier daemon left; a damaged file is told of when a plan is asked for. */
export function lastMeasuredMs(home: string): number {
  try {
    return newestMs(readMeasurements(home))
  } catch {
    return 0
  }
}

/** From the file, or from another machine. */
export function parseMeasurements(value: unknown): Measurements {
  const { machines, worlds, hops } = measurementFile.parse(value)
  return {
    machines: machines.map((one) => ({ ...one, machine: machineId(one.machine) })),
    worlds: worlds.map((one) => ({ ...one, machines: one.machines.map(machineId) })),
    hops: hops.map((one) => ({
      ...one,
      source: machineId(one.source),
      target: machineId(one.target),
    })),
  }
}

export async function writeMeasurements(home: string, measurements: Measurements): Promise<void> {
  const path = measurementPath(home)
  mkdirSync(dirname(path), { recursive: true })
  await writeFileAtomically(path, `${JSON.stringify({ version: 1, ...measurements }, null, 2)}\n`)
}

/** Newer measurements of the same thing replace older ones; the rest stays. */
export function mergeMeasurements(old: Measurements, fresh: Measurements): Measurements {
  const merge = <One>(
    a: readonly One[],
    b: readonly One[],
    key: (one: One) => string,
  ): readonly One[] => [...new Map([...a, ...b].map((one) => [key(one), one])).values()]
  return {
    machines: merge(old.machines, fresh.machines, (one) => one.machine),
    worlds: merge(
      old.worlds,
      fresh.worlds,
      (one) => `${one.backend} ${one.machines.toSorted().join(' ')}`,
    ),
    hops: merge(old.hops, fresh.hops, (one) => [one.source, one.target].sort().join(' ')),
  }
}

const textOf = (fact: Fact<string>): string => (fact.known ? fact.value : 'unknown')

/** The worker is ours and versioned with Bushel; what changes its speed is the MLX below it. */
export function versionsOf(facts: MachineFacts): ProbeVersions | null {
  const { system, runtime } = facts
  if (!runtime.known) return null
  return {
    os: `${textOf(system.name)} ${textOf(system.version)} (${textOf(system.build)})`,
    mlx: runtime.value.mlx,
    worker: runtime.value.mlxLm,
  }
}

/** The ways between these machines by interface and port: another plug, another text. */
export function cablesOf(facts: readonly MachineFacts[]): string {
  return buildTopology(facts)
    .links.map((link) =>
      [
        link.class,
        ...link.ends
          .map((end) => `${end.machine}/${end.interface ?? '?'}/${end.receptacle ?? ''}`)
          .sort(),
      ].join(' '),
    )
    .sort()
    .join('; ')
}

export function presentOf(
  facts: readonly MachineFacts[],
  idOf: ReadonlyMap<string, MachineId>,
): Present {
  const named = (id: MachineId): MachineFacts | undefined =>
    facts.find((one) => idOf.get(one.name) === id)
  return {
    versions: (id) => {
      const found = named(id)
      return found === undefined ? null : versionsOf(found)
    },
    cables: (ids) => {
      const found = ids.flatMap((id) => named(id) ?? [])
      return found.length === ids.length ? cablesOf(found) : null
    },
  }
}
