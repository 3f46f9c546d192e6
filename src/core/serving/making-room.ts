// Which models go so that another one can be loaded, and which wishes can never be met as things stand.
import { type WantedDeployment, roster, wantedDeployments } from '../cluster/desired.ts'
import { type MachineState, recentFailures } from '../cluster/state.ts'
import { readinessOf } from '../coordinator/backoff.ts'
import { describeRoom, roomFor } from '../coordinator/room.ts'
import type { DeploymentId } from '../ids.ts'
import { settledCoordinator } from '../membership/view.ts'
import { conditionOf } from './waiting.ts'

export interface Clearance {
  readonly wanted: WantedDeployment
  readonly gone: readonly WantedDeployment[]
}

/** Only the coordinator decides it, or two would each unload something else; one wish at a time. */
export function clearanceNow(state: MachineState, nowMs: number): Clearance | null {
  if (state.term === null || settledCoordinator(state, nowMs) !== state.self.id) return null
  for (const wanted of wantedDeployments(state.registers)) {
    if (!isWaiting(state, wanted, nowMs)) continue
    const room = roomFor(state, wanted, nowMs)
    if (room.kind === 'clearable') return { wanted, gone: room.deployments }
  }
  return null
}

/**
 * Why a model that a request wants fits nowhere and nothing can make room for it; null while there is hope: a
 * machine that is away, a model that will be idle. What a person wants waits for as long as that person does.
 */
export function whyNoRoom(state: MachineState, id: DeploymentId, nowMs: number): string | null {
  const wanted = wantedDeployments(state.registers).find((deployment) => deployment.id === id)
  if (wanted === undefined || wanted.keepAliveMs === null) return null
  for (const machine of roster(state.registers).keys())
    if (machine !== state.self.id && state.peers.get(machine)?.status !== 'alive') return null
  if (!isWaiting(state, wanted, nowMs)) return null
  const room = roomFor(state, wanted, nowMs)
  return room.kind === 'full'
    ? `${wanted.model.name} cannot be loaded: ${describeRoom(room)}`
    : null
}

function isWaiting(state: MachineState, wanted: WantedDeployment, nowMs: number): boolean {
  if ([...state.starts.values()].some(({ plan }) => plan.deployment === wanted.id)) return false
  if (readinessOf(wanted, recentFailures(state, nowMs), nowMs).kind !== 'start-now') return false
  return conditionOf(state, wanted, nowMs).status === 'waiting'
}
