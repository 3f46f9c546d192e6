// What would come of a wish, asked before it is written down: a plan, or the reason why there is none.
import type { WantedDeployment } from '../cluster/desired.ts'
import type { MachineState } from '../cluster/state.ts'
import { type MachineId, groupId } from '../ids.ts'
import { hearEachOther } from '../membership/view.ts'
import { type PlacementOutcome, placeDeployment } from './placement.ts'
import { candidateRecords } from './candidates.ts'

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
  return placeDeployment({ group: groupId('preview'), deployment, machines, taken: [], connected })
}
