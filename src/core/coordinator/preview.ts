// What would come of a wish, asked before it is written down: a plan, or the reason why there is none.
import type { WantedDeployment } from '../cluster/desired.ts'
import type { MachineState } from '../cluster/state.ts'
import { type MachineId, groupId } from '../ids.ts'
import { hearEachOther } from '../membership/view.ts'
import { type PlacementOutcome, placeDeployment } from './placement.ts'
import { candidateRecords } from './candidates.ts'
import { chooseBackends } from './world-backend.ts'

export function previewPlacement(
  state: MachineState,
  deployment: WantedDeployment,
  without: readonly MachineId[] = [],
): PlacementOutcome {
  // What serves the same deployment now makes room for what replaces it.
  const there = candidateRecords(state).filter((record) => !without.includes(record.id))
  const machines = there.map((record) => ({
    ...record,
    holdings: record.holdings.filter(({ plan }) => plan.deployment !== deployment.id),
  }))
  const connected = (a: MachineId, b: MachineId): boolean => hearEachOther(state, a, b)
  const group = groupId('preview')
  const placed = placeDeployment({ group, deployment, machines, taken: [], connected })
  if (placed.kind === 'refused') return placed
  // Facts may be old here, or not asked for yet; before a start they are asked for anew.
  const nowMs = state.facts.learnedMs
  const choice = chooseBackends(state, { deployment, plan: placed.plan, nowMs })
  if (choice.kind === 'refused') return choice
  return choice.kind === 'plan' ? { ...placed, plan: choice.plan } : placed
}
