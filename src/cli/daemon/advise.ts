// Asks the planner where the next group of a model should go when nobody fixed it: facts of every machine, links,
// what was measured, what runs already. When something is missing it says what; free memory then decides.
import { chooseBackend } from '../../core/backends/choose-backend.ts'
import type { DeviceCell } from '../../core/backends/device-matrix.ts'
import {
  type Advice,
  type AdviceQuestion,
  type AdvisedStage,
  promptTokensIn,
} from '../../core/cluster/advice.ts'
import type { Deployment } from '../../core/cluster/desired.ts'
import type { GroupPlan } from '../../core/cluster/group-plan.ts'
import { type MachineState, liveRecords } from '../../core/cluster/state.ts'
import type { MachineId } from '../../core/ids.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { placeModel } from '../../core/plan/place-model.ts'
import type { PlanModel, PlannedGroup, RankedPlan, StrategyName } from '../../core/plan/types.ts'
import { clusterView } from '../../gateway/cluster/view.ts'
import { findModel } from '../../models/catalogue.ts'
import type { PlanTables } from '../../models/plan-tables.ts'
import { clusterFrom } from '../plan/current-cluster.ts'
import { asHeld } from '../plan/held.ts'
import { readMeasurements } from '../probe/measurement-file.ts'
import type { FactsWithoutPaths } from './facts-exchange.ts'

/** Collecting facts runs tools on every machine; nobody waits longer for advice. */
const factsMsMax = 20_000

export interface AdviceParts {
  readonly state: () => MachineState
  readonly facts: () => Promise<FactsWithoutPaths>
  readonly tables: () => PlanTables
  readonly home: string
  readonly nowMs: () => number
  /** The folder of a model's files on this machine, where it has them. */
  readonly folderOf: (deployment: Deployment) => string | null
}

export interface Asked {
  readonly deployment: Deployment
  readonly question: AdviceQuestion
}

export async function advise(parts: AdviceParts, asked: Asked): Promise<Advice> {
  const { basis } = asked.question
  try {
    return { ...(await tryToAdvise(parts, asked)), basis }
  } catch (error) {
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error), basis }
  }
}

async function tryToAdvise(parts: AdviceParts, { deployment, question }: Asked): Promise<Advice> {
  const unknown = (why: string): Advice => ({ kind: 'unknown', why })
  const tables = parts.tables()
  const model = modelOf(parts, tables, deployment)
  if (typeof model === 'string') return unknown(model)
  const facts = await within(parts.facts(), factsMsMax)
  if (facts === null) return unknown('the facts of the machines took too long to collect')
  const [silent] = facts.silent
  if (silent !== undefined) return unknown(`${silent.name} does not say what it is`)
  const state = parts.state()
  const view = clusterView(state, parts.nowMs())
  const there = clusterFrom({
    facts: facts.machines,
    measuredLinks: facts.links,
    view: {
      ...view,
      // What is to be placed anew stands in nobody's way.
      deployments: view.deployments.filter(({ id }) => id !== deployment.id),
      machines: view.machines.map((machine) => ({
        ...machine,
        memoryReservedBytes: reservedByOthers(state, machine.id, deployment),
      })),
    },
    tables,
    store: readMeasurements(parts.home),
  })
  const { machines: named } = deployment
  const { groups, avoid } = question
  const outcome = placeModel(
    {
      machines: there.machines
        .filter(({ id }) => named.length === 0 || named.includes(id))
        .filter(({ id }) => !avoid.includes(id)),
      links: there.links,
      worlds: there.worlds,
      model: asHeld(model, there.inFloat32),
      contextTokens: deployment.contextTokens,
      promptTokens: promptTokensIn(deployment.contextTokens),
      concurrency: 1,
      policy: { goal: 'fastest', pin: [], avoid: [], keepFree: [] },
      // How many groups there are to be is the person's wish, not the planner's choice here.
      abilities: { ...tables.abilities, replicas: groups > 1 },
      regime: null,
      prices: null,
    },
    {},
  )
  if (outcome.kind === 'no-machines') return unknown(outcome.message)
  if (outcome.kind === 'memory-short') return unknown(outcome.shortage.message)
  if (outcome.warnings.length > 0) return unknown(outcome.warnings.join('; '))
  const chosen = chooseFor(outcome.plans, groups)
  if (chosen === null) return unknown('no plan that the worker can run was found')
  return adviceFrom(chosen, { facts: facts.machines, idOf: idsByName(there.machines) })
}

/** The best that leaves room for the other groups; where they do not all fit, the best for one. */
export function chooseFor(plans: readonly RankedPlan[], groups: number): RankedPlan | null {
  const runnable = plans.filter((plan) => plan.cannotRun === null)
  const count = (plan: RankedPlan): number => plan.placement.groups.length
  const together = groups > 1 ? runnable.find((plan) => count(plan) >= groups) : undefined
  return together ?? runnable.find((plan) => count(plan) === 1) ?? null
}

function modelOf(
  parts: AdviceParts,
  tables: PlanTables,
  deployment: Deployment,
): PlanModel | string {
  const folder = parts.folderOf(deployment)
  const found = findModel(folder ?? deployment.model.name, tables)
  return found.kind === 'found' ? found.model : found.message
}

/** Memory that stays taken when this deployment is placed anew. */
function reservedByOthers(state: MachineState, machine: string, deployment: Deployment): number {
  const record = liveRecords(state).find((one) => one.id === machine)
  if (record === undefined) return 0
  return record.holdings
    .filter(({ plan }) => plan.deployment !== deployment.id)
    .reduce((sum, { plan }) => sum + memoryOn(plan, record.id), 0)
}

function memoryOn(plan: GroupPlan, machine: MachineId): number {
  return plan.stages
    .flatMap((stage) => stage.ranks)
    .filter((rank) => rank.machine === machine)
    .reduce((sum, rank) => sum + rank.memoryBytes, 0)
}

const idsByName = (
  machines: readonly { readonly name: string; readonly id: MachineId }[],
): ReadonlyMap<string, MachineId> => new Map(machines.map(({ name, id }) => [name, id]))

const strategyNames: Readonly<
  Record<StrategyName, Extract<Advice, { kind: 'planned' }>['strategy'] | null>
> = {
  single: 'single',
  pipeline: 'pipeline',
  tensor: 'tensor',
  'uneven-tensor': 'tensor',
  expert: 'expert',
  'tensor-pipeline': 'tensor-pipeline',
  replicas: null,
}

/** A replica is what its group is. */
function strategyOf(group: PlannedGroup): StrategyName {
  const worlds = group.stages.filter((stage) => stage.ranks.length > 1)
  if (worlds.length === 0) return group.stages.length > 1 ? 'pipeline' : 'single'
  if (group.stages.length > 1) return 'tensor-pipeline'
  return worlds[0]?.sharing === 'expert' ? 'expert' : 'tensor'
}

/** A plan as a wish: whom to use in which order; over RDMA with the devices that lead from one to the other. */
export function adviceFrom(
  { placement, figures, why, kbFindings }: RankedPlan,
  about: {
    readonly facts: readonly MachineFacts[]
    readonly idOf: ReadonlyMap<string, MachineId>
  },
): Advice {
  const [group] = placement.groups
  if (group === undefined) return { kind: 'unknown', why: 'the plan holds no group' }
  const { strategy: chosen } = placement
  const strategy = strategyNames[chosen === 'replicas' ? strategyOf(group) : chosen]
  if (strategy === null) return { kind: 'unknown', why: 'the plan holds no group' }
  const stages: AdvisedStage[] = []
  const rows: DeviceCell[][] = []
  let overRdma = false
  const ranks = group.stages.reduce((sum, stage) => sum + stage.ranks.length, 0)
  for (const stage of group.stages) {
    let machines = stage.ranks.map((rank) => rank.machine)
    const before = rows.length
    for (const _ of machines) rows.push(Array.from({ length: ranks }, () => null))
    if (stage.world === 'jaccl') {
      const choice = chooseBackend({
        machines: about.facts.filter((one) =>
          machines.includes(about.idOf.get(one.name) ?? ('' as MachineId)),
        ),
        busyMachines: [],
        rendezvous: { kind: 'control-plane' },
      })
      if (choice.kind !== 'jaccl') return { kind: 'unknown', why: choice.why }
      overRdma = true
      machines = choice.order.flatMap((name) => about.idOf.get(name) ?? [])
      for (const [a, row] of choice.matrix.entries())
        for (const [b, cell] of row.entries()) (rows[before + a] ?? [])[before + b] = cell
    }
    const layers = stage.layers.to - stage.layers.from
    stages.push({ layers, machines, sharing: stage.sharing })
  }
  return {
    kind: 'planned',
    strategy,
    stages,
    backend: overRdma ? 'jaccl' : 'ring',
    ...(overRdma ? { devices: rows } : {}),
    why,
    kbFindings,
    predicted: {
      tokensPerSecond: figures.tokensPerSecondAlone,
      firstTokenSeconds: figures.firstTokenSeconds,
      restsOn: figures.restsOn,
    },
  }
}

async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), ms)))
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
