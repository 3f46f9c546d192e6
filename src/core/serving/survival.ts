// What the loss of one machine would do to a deployment, said before it happens.
import type { WantedDeployment } from '../cluster/desired.ts'
import { type GroupPlan, machinesOf } from '../cluster/group-plan.ts'
import type { GroupView } from '../cluster/groups.ts'
import { type MachineState, machineName } from '../cluster/state.ts'
import { previewPlacement } from '../coordinator/preview.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'

export interface LossForecast {
  readonly machine: MachineId
  readonly survives: boolean
  /** What the reader of an answer would see, in milliseconds; null when nobody can say. */
  readonly gapMs: number | null
  readonly how: string
}

/** Reading the prompt again, for a conversation of ordinary length. */
const prefillMs = 1000

export function lossForecasts(
  state: MachineState,
  deployment: WantedDeployment,
  groups: readonly GroupView[],
): readonly LossForecast[] {
  const ready = groups.filter((group) => group.status === 'ready')
  const machines = new Set(ready.flatMap((group) => machinesOf(group.plan)))
  return [...machines].map((machine) => forecast(state, { deployment, ready, machine }))
}

function forecast(
  state: MachineState,
  about: { deployment: WantedDeployment; ready: readonly GroupView[]; machine: MachineId },
): LossForecast {
  const { deployment, ready, machine } = about
  const noticedMs = limits.deadAfterMs
  const spare = ready.find((group) => !machinesOf(group.plan).includes(machine))
  if (spare !== undefined) {
    const how = `another group of it is ready (${spare.group})`
    return { machine, survives: true, gapMs: noticedMs + prefillMs, how }
  }
  const placed = previewPlacement(state, deployment, [machine])
  if (placed.kind === 'refused')
    return { machine, survives: false, gapMs: null, how: placed.reason }
  const loadMs = Math.max(
    0,
    ...ready.flatMap(({ ranks }) => ranks.map((r) => r.holding?.loadMs ?? 0)),
  )
  const missing = placed.missing.length > 0
  return {
    machine,
    survives: true,
    gapMs: missing ? null : noticedMs + loadMs + prefillMs,
    how: `it would be loaded again ${describe(state, placed.plan)}${missing ? ', after its files are copied' : ''}`,
  }
}

function describe(state: MachineState, plan: GroupPlan): string {
  const nameOf = (id: MachineId): string => machineName(state, id) ?? id.slice(0, 8)
  return `on ${machinesOf(plan).map(nameOf).join(', ')} (${plan.strategy})`
}
