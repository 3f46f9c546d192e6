// Which models have been idle for longer than they were to be kept.
import { type WantedDeployment, wantedDeployments } from '../cluster/desired.ts'
import { headMachine } from '../cluster/group-plan.ts'
import type { MachineState } from '../cluster/state.ts'
import type { GroupId } from '../ids.ts'
import { readyGroups } from './routing.ts'

/** What the machine of a group's head knows of its use. */
export interface GroupUse {
  readonly running: number
  /** When the last attempt ended, or since when the group has been there. */
  readonly lastMs: number
}

/**
 * Deployments that this machine should unload. Of several groups the first one takes whatever comes to an
 * idle cluster, so its silence is the silence of all, and its head is the one to speak.
 */
export function idleDeployments(
  state: MachineState,
  useOf: (group: GroupId) => GroupUse,
  nowMs: number,
): readonly WantedDeployment[] {
  return wantedDeployments(state.registers).filter((deployment) => {
    if (deployment.keepAliveMs === null) return false
    const [first] = readyGroups(state, deployment.id)
    if (first === undefined || headMachine(first.plan) !== state.self.id) return false
    const { running, lastMs } = useOf(first.group)
    return running === 0 && nowMs - lastMs >= deployment.keepAliveMs
  })
}
