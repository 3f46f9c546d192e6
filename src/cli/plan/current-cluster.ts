// The cluster at hand, as the planner wants it: what the machines say of themselves, and what already runs on
// them. Null when no daemon runs here; the command then says so.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { MachineId } from '../../core/ids.ts'
import type { LinkFact } from '../../core/links/link-fact.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { type Measurements, applyMeasurements } from '../../core/plan/probe/apply.ts'
import { planLinks } from '../../core/plan/probe/plan-links.ts'
import type { MeasuredWorld, PlanLink, PlanMachine } from '../../core/plan/types.ts'
import { buildTopology } from '../../core/topology/topology.ts'
import type { PlanTables } from '../../models/plan-tables.ts'
import { type ClusterView, type MachineView, clusterView } from '../../wire/cluster-view.ts'
import type { CliContext } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { askCluster } from '../machines/cluster-facts.ts'
import { presentOf, readMeasurements } from '../probe/measurement-file.ts'
import { computesInFloat32 } from './held.ts'
import { homeDir } from '../settings.ts'

export interface ClusterAtHand {
  readonly machines: readonly PlanMachine[]
  readonly links: readonly PlanLink[]
  readonly worlds: readonly MeasuredWorld[]
  /** Measurements that no longer count, and why. */
  readonly stale: readonly string[]
  /** Every machine computes on its CPU, in float32. */
  readonly inFloat32: boolean
  /** Where the files of the models on this machine lie, by name. */
  readonly folders?: ReadonlyMap<string, string>
}

const listedModels = z.array(z.object({ name: z.string(), path: z.string() }))

/** Null when no daemon runs on this machine. */
export type CurrentCluster = () => Promise<ClusterAtHand | null>

export const noDaemon: CurrentCluster = () => Promise.resolve(null)

export function clusterAtHand(context: CliContext, tables: PlanTables): CurrentCluster {
  return async () => {
    const daemon = findDaemon(homeDir(context.env))
    const facts = await askCluster(context)
    if (daemon === null || facts === null) return null
    const view = clusterView.parse(await daemon.get('/cluster/view'))
    const models = listedModels.parse(await daemon.get('/cluster/models'))
    const there = clusterFrom({
      facts: facts.machines,
      measuredLinks: facts.links,
      view,
      tables,
      store: readMeasurements(homeDir(context.env)),
    })
    const whole = models.filter(({ path }) => existsSync(join(path, 'config.json')))
    return { ...there, folders: new Map(whole.map(({ name, path }) => [name.toLowerCase(), path])) }
  }
}

/** What the machines say of themselves and what was measured on them, as the planner wants it. */
export function clusterFrom(given: {
  readonly facts: readonly MachineFacts[]
  readonly measuredLinks: readonly LinkFact[]
  readonly view: ClusterView
  readonly tables: PlanTables
  readonly store: Measurements
}): ClusterAtHand {
  const { facts, view, tables, store } = given
  const machines = facts.flatMap((one) => {
    const seen = view.machines.find((machine) => machine.name === one.name)
    return seen === undefined ? [] : [planMachine(one, { seen, view, tables })]
  })
  const idOf = new Map(machines.map((machine) => [machine.name, machine.id]))
  const links = planLinks({
    links: buildTopology(facts).links,
    measured: given.measuredLinks,
    entries: tables.links,
    idOf,
  })
  const inFloat32 = facts.length > 0 && facts.every(computesInFloat32)
  return { ...applyMeasurements({ machines, links }, store, presentOf(facts, idOf)), inFloat32 }
}

function planMachine(
  { name, hardware, power }: MachineFacts,
  about: { seen: MachineView; view: ClusterView; tables: PlanTables },
): PlanMachine {
  const { seen, view, tables } = about
  const chipName = hardware.chip.known ? hardware.chip.value.replaceAll(' ', '').toLowerCase() : ''
  const found = tables.chips.find(({ chip, names }) =>
    [chip.name, ...names].some((word) => word.replaceAll(' ', '').toLowerCase() === chipName),
  )
  const held = view.deployments.flatMap(({ model, groups }) =>
    groups.flatMap(({ stages }) =>
      stages.flatMap(({ ranks, backend }) =>
        ranks
          .filter((rank) => rank.machine === name)
          .map((rank) => ({ name: model, memoryBytes: rank.memoryBytes, backend })),
      ),
    ),
  )
  const running = held.map((one) => ({ name: one.name, memoryBytes: one.memoryBytes }))
  const roles = { always: 'always-on', sometimes: 'sometimes', client: 'client' } as const
  return {
    id: seen.id as MachineId,
    name,
    chip: found?.chip ?? null,
    measurement: {},
    memoryFreeBytes: (seen.memoryLendBytes ?? 0) - (seen.memoryReservedBytes ?? 0),
    role: roles[(seen.role ?? 'always') as keyof typeof roles],
    onBattery: power.source.known && power.source.value === 'battery',
    inJacclWorld: held.some(({ backend }) => backend === 'jaccl'),
    running,
    diskBytesPerSecond: null,
  }
}
