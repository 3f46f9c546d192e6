// Which ready group answers next.
import { type GroupView, groupsSeen } from '../cluster/groups.ts'
import { headMachine } from '../cluster/group-plan.ts'
import type { MachineState } from '../cluster/state.ts'
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import { planted } from '../planted.ts'

export interface Route {
  readonly group: GroupId
  readonly machine: MachineId
}

/** Groups of a deployment that are ready and whose head this machine can talk to. */
export function readyGroups(state: MachineState, deployment: DeploymentId): readonly GroupView[] {
  return groupsSeen(state).filter((view) => {
    if (view.deployment !== deployment || !isAskable(view)) return false
    const head = headMachine(view.plan)
    return head === state.self.id || state.peers.get(head)?.status === 'alive'
  })
}

function isAskable({ status }: GroupView): boolean {
  return status === 'ready' || (planted.readyTooSoon && status === 'forming')
}

/** The least busy ready group as far as this gateway knows, or null. */
export function chooseRoute(
  groups: readonly GroupView[],
  known: { load: ReadonlyMap<GroupId, number>; avoid: readonly GroupId[] },
): Route | null {
  const { load, avoid } = known
  let best: GroupView | null = null
  for (const group of groups) {
    if (avoid.includes(group.group)) continue
    if (best === null || (load.get(group.group) ?? 0) < (load.get(best.group) ?? 0)) best = group
  }
  return best === null ? null : { group: best.group, machine: headMachine(best.plan) }
}
