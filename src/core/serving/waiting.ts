// Why a deployment is not ready yet, in words a person can act on.
import type { WantedDeployment } from '../cluster/desired.ts'
import { type GroupView, groupsSeen } from '../cluster/groups.ts'
import type { Failure } from '../cluster/record.ts'
import { type MachineState, liveRecords, machineName, recentFailures } from '../cluster/state.ts'
import { readinessOf } from '../coordinator/backoff.ts'
import { explainFailure, meaningOf } from '../doctor/rank-log.ts'
import type { PlacementOutcome } from '../coordinator/placement.ts'
import { previewPlacement } from '../coordinator/preview.ts'
import { limits } from '../limits.ts'
import { describeRoom, roomFor } from '../coordinator/room.ts'

export type DeploymentStatus = 'ready' | 'starting' | 'waiting' | 'degraded'

export interface DeploymentCondition {
  readonly status: DeploymentStatus
  readonly detail: string
  readonly groups: readonly GroupView[]
}

export function conditionOf(
  state: MachineState,
  deployment: WantedDeployment,
  nowMs: number,
): DeploymentCondition {
  const groups = groupsSeen(state).filter((group) => group.deployment === deployment.id)
  if (groups.some((group) => group.status === 'ready'))
    return { status: 'ready', detail: '', groups }
  const forming = groups.find((group) => group.status === 'forming')
  if (forming !== undefined) return { status: 'starting', detail: progressOf(forming), groups }
  const readiness = readinessOf(deployment, recentFailures(state, nowMs), nowMs)
  if (readiness.kind === 'degraded') {
    const detail = `failed ${readiness.failures} times, last because ${whyFailed(state, readiness)}; load it again to try once more`
    return { status: 'degraded', detail, groups }
  }
  if (readiness.kind === 'start-later') {
    const seconds = Math.ceil((readiness.atMs - nowMs) / 1000)
    return {
      status: 'waiting',
      detail: `failed ${readiness.failures} times, last because ${whyFailed(state, readiness)}; starts again in ${seconds} s`,
      groups,
    }
  }
  const asked = state.advice.get(deployment.id)
  if (asked?.advice === null && nowMs - asked.askedMs < limits.adviceWaitMsMax)
    return { status: 'waiting', detail: 'the planner is being asked where it should go', groups }
  const placed = previewPlacement(state, deployment)
  const roomDetail = (): string => {
    const room = roomFor(state, deployment, nowMs)
    return room.kind === 'fits' ? 'about to start' : describeRoom(room)
  }
  const detail = placed.kind === 'refused' ? roomDetail() : comingOf(state, placed)
  return { status: 'waiting', detail, groups }
}

/** The rank that failed first knows why; its neighbours only know that it went. */
function whyFailed(
  state: MachineState,
  { cause, of }: { readonly cause: string; readonly of: readonly Failure[] },
): string {
  const known = recentFailures(state, -Infinity)
  const logs = of.map((failure) => {
    const machine = known.find((one) => one.group === failure.group && one.rank === failure.rank)
    const name = machine === undefined ? undefined : machineName(state, machine.machine)
    return { rank: failure.rank, machine: name ?? 'its machine', lines: failure.cause.split(' | ') }
  })
  const found = explainFailure(logs)
  if (found === null) return cause
  return `rank ${found.rank} on ${found.machine} said "${found.line}". This means: ${meaningOf(found)}`
}

/** Files on their way, if that is what the start waits for. */
function comingOf(
  state: MachineState,
  { plan, missing }: Extract<PlacementOutcome, { kind: 'placed' }>,
): string {
  const told = liveRecords(state)
    .filter((record) => missing.includes(record.id))
    .map((record) => {
      const fetch = record.fetches?.find((one) => one.digest === plan.model.digest)
      if (fetch === undefined) return `${record.name} is to get the files`
      if (fetch.failure !== null)
        return `copying the files to ${record.name} failed: ${fetch.failure}`
      return `copying the files to ${record.name}: ${Math.round(fetch.fraction * 100)}%`
    })
  return told.join('; ') || 'about to start'
}

function progressOf(group: GroupView): string {
  const slowest = group.ranks
    .filter((rank) => rank.state !== 'ready')
    .sort((a, b) => (a.holding?.fraction ?? 0) - (b.holding?.fraction ?? 0))[0]
  if (slowest?.holding == null) return 'starting'
  const percent = Math.round(slowest.holding.fraction * 100)
  return `${slowest.holding.phase} ${percent}%`
}
