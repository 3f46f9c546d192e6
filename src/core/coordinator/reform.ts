// When a pipeline has lost a stage: the plan that keeps the others where they are and puts the lost layers on
// a machine with room, or null when only a new start helps.
import { reasonAfterLoss } from '../cluster/advice.ts'
import { type WantedDeployment, wantedDeployments } from '../cluster/desired.ts'
import { type GroupPlan, placedRanks } from '../cluster/group-plan.ts'
import type { GroupView, RankView } from '../cluster/groups.ts'
import { type MachineRecord, reservedBytes } from '../cluster/record.ts'
import { type MachineState, recentFailures } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { hearEachOther } from '../membership/view.ts'
import { memoryForShare, sharesOf } from './placement.ts'
import { candidateRecords } from './candidates.ts'

export type Reform =
  | { readonly kind: 'plan'; readonly plan: GroupPlan; readonly wish: number }
  /** Something is missing in the picture that time will show. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'impossible' }

const impossible: Reform = { kind: 'impossible' }

export function planReform(
  state: MachineState,
  view: GroupView,
  { groups, nowMs }: { groups: readonly GroupView[]; nowMs: number },
): Reform {
  const { plan, ranks } = view
  const deployment = wantedDeployments(state.registers).find((one) => one.id === view.deployment)
  if (deployment === undefined || !isPlainPipeline(plan)) return impossible
  // It was tried, and somebody did not come: whoever is left may be what hangs.
  const isTried = recentFailures(state, nowMs).some(
    (failure) => failure.group === view.group && (failure.formation ?? 0) > plan.formation,
  )
  if (isTried) return impossible
  // Another group can answer at once: that is quicker than anything done here.
  const spare = groups.some(
    (other) =>
      other.group !== view.group &&
      other.deployment === view.deployment &&
      other.status === 'ready',
  )
  if (spare) return impossible
  const lost = ranks.filter((rank) => rank.state === 'missing')
  const left = ranks.filter((rank) => rank.state === 'ready' || rank.state === 'orphaned')
  if (left.length === 0 || left.length + lost.length < ranks.length) return impossible
  // Only a link seems broken; a machine that died is not known to be dead yet.
  if (lost.length === 0 && !isSettled(ranks, nowMs)) return { kind: 'wait' }
  const machines = machinesFor(state, { deployment, plan, lost })
  if (machines === null) return impossible
  return {
    kind: 'plan',
    wish: Math.max(0, ...left.map((rank) => rank.holding?.wish ?? 0)),
    plan: {
      ...plan,
      formation: plan.formation + 1,
      stages: stagesWith(plan, machines),
      ...(plan.reason === undefined || !isMoved(plan, machines)
        ? {}
        : { reason: reasonAfterLoss(plan.reason) }),
    },
  }
}

/** Whether anything comes to lie elsewhere than the planner had chosen. */
function isMoved(plan: GroupPlan, machines: ReadonlyMap<number, { machine: MachineId }>): boolean {
  return placedRanks(plan).some(
    ({ rank, machine }) => (machines.get(rank)?.machine ?? machine) !== machine,
  )
}

function isPlainPipeline({ stages }: GroupPlan): boolean {
  return stages.length > 1 && stages.every((stage) => stage.ranks.length === 1)
}

function isSettled(ranks: readonly RankView[], nowMs: number): boolean {
  return ranks.every(
    ({ state, holding }) =>
      state !== 'orphaned' || nowMs - (holding?.sinceMs ?? nowMs) > limits.deadAfterMs,
  )
}

/** A machine for each lost rank: its own, one outside the group, or one that already holds a part. */
function machinesFor(
  state: MachineState,
  about: { deployment: WantedDeployment; plan: GroupPlan; lost: readonly RankView[] },
): ReadonlyMap<number, { machine: MachineId; memoryBytes: number }> | null {
  const { deployment, plan, lost } = about
  const shares = sharesOf(
    deployment,
    plan.stages.map(() => 1),
    plan.stages.map(({ layers: [from, to] }) => to - from),
  )
  const gone = new Set(lost.map((rank) => rank.rank))
  const staying = placedRanks(plan)
    .filter((rank) => !gone.has(rank.rank))
    .map((rank) => rank.machine)
  const found = new Map<number, { machine: MachineId; memoryBytes: number }>()
  let candidates = candidateRecords(state)
  const version = candidates.find((record) => staying.includes(record.id))?.version ?? null
  for (const { rank, machine: before } of lost) {
    const preference = (record: MachineRecord): number =>
      record.id === before ? 0 : staying.includes(record.id) ? 2 : 1
    const seat = candidates
      .flatMap((record) =>
        seatOn(state, { record, deployment, staying, version, share: shares[rank] ?? 1 }),
      )
      .sort((a, b) => preference(a.record) - preference(b.record) || b.freeBytes - a.freeBytes)[0]
    if (seat === undefined) return null
    const { record, memoryBytes } = seat
    found.set(rank, { machine: record.id, memoryBytes })
    candidates = candidates.map((one) =>
      one.id === record.id ? { ...one, memoryLendBytes: one.memoryLendBytes - memoryBytes } : one,
    )
  }
  return found
}

function seatOn(
  state: MachineState,
  about: {
    record: MachineRecord
    deployment: WantedDeployment
    staying: readonly MachineId[]
    /** Ranks of one group run one version. */
    version: string | null
    share: number
  },
): readonly { record: MachineRecord; freeBytes: number; memoryBytes: number }[] {
  const { record, deployment, staying, share } = about
  const hasFiles = record.models.some((model) => model.digest === deployment.model.digest)
  if (record.role === 'client' || !record.accepts.ok || !hasFiles) return []
  if (about.version !== null && record.version !== about.version) return []
  if (staying.some((other) => other !== record.id && !hearEachOther(state, record.id, other)))
    return []
  const freeBytes = record.memoryLendBytes - reservedBytes(record.holdings)
  const { leastBytes, wantedBytes } = memoryForShare(deployment, record, share)
  if (freeBytes < leastBytes) return []
  return [{ record, freeBytes, memoryBytes: Math.min(freeBytes, wantedBytes) }]
}

function stagesWith(
  plan: GroupPlan,
  machines: ReadonlyMap<number, { machine: MachineId; memoryBytes: number }>,
): GroupPlan['stages'] {
  return plan.stages.map((stage, index) => {
    const moved = machines.get(index)
    return moved === undefined ? stage : { ...stage, ranks: [{ ...moved, share: 1 }] }
  })
}
