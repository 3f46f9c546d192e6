// Which ready group answers next.
import { type GroupView, groupsSeen } from '../cluster/groups.ts'
import { type GroupPlan, headMachine } from '../cluster/group-plan.ts'
import type { MachineState } from '../cluster/state.ts'
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import { planted } from '../planted.ts'

export interface Route {
  readonly group: GroupId
  readonly machine: MachineId
  /** How it computes: groups of one make say the same after a resume. */
  readonly make: string
}

export interface RouteKnowledge {
  /** Attempts that this gateway has on each group. */
  readonly load: ReadonlyMap<GroupId, number>
  readonly avoid: readonly GroupId[]
  /** The group that last read a prompt beginning like this one. */
  readonly familiar: GroupId | null
}

/** A cached prefix is worth waiting behind this many others, and no more. */
const familiarWorth = 2

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

/** The least busy ready group, or one that knows the beginning of the prompt and is hardly busier. */
export function chooseRoute(
  groups: readonly GroupView[],
  { load, avoid, familiar }: RouteKnowledge,
): Route | null {
  const costOf = (view: GroupView): number => {
    // Others may use it too: what its head said last, unless we know of more ourselves.
    const said = view.ranks[0]?.holding?.queue ?? 0
    const busy = Math.max(load.get(view.group) ?? 0, said)
    return busy - (view.group === familiar ? familiarWorth : 0)
  }
  let best: GroupView | null = null
  for (const group of groups) {
    if (avoid.includes(group.group)) continue
    if (best === null || costOf(group) < costOf(best)) best = group
  }
  if (best === null) return null
  return { group: best.group, machine: headMachine(best.plan), make: makeOf(best.plan) }
}

/** Layers cut elsewhere give the same numbers; heads shared out otherwise may not. */
function makeOf({ stages }: GroupPlan): string {
  return stages
    .filter((stage) => stage.ranks.length > 1)
    .map((stage) => `${stage.worldStrategy} ${stage.ranks.map((rank) => rank.share).join(':')}`)
    .join(', ')
}
