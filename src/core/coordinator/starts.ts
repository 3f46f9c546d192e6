// A group's start, from the first order to its first token: prepare everywhere, commit everywhere, or
// give everything back. Orders are repeated to whoever has not answered; answering twice does no harm.
import type { Decision } from '../cluster/decision.ts'
import { machinesOf, placedRanks } from '../cluster/group-plan.ts'
import type { GroupView, RankView } from '../cluster/groups.ts'
import {
  type Commitment,
  type MachineState,
  type Moment,
  type Start,
  recentFailures,
} from '../cluster/state.ts'
import { limits } from '../limits.ts'
import { holdOffAfter } from './backoff.ts'
import { isReachable, orderCommit, orderPrepare, orderStop, stopReasons } from './orders.ts'

export interface StartStep {
  readonly start: Start
  readonly groups: readonly GroupView[]
  readonly moment: Moment
  readonly out: Decision
}

export function advanceStart(state: MachineState, step: StartStep): void {
  const { start, groups, moment, out } = step
  const { plan } = start
  const { group } = plan
  const view = groups.find((other) => other.group === group)
  const trouble = troubleWith(state, { start, view, nowMs: moment.nowMs })
  if (trouble !== null) {
    // Before a commit nothing of it runs: what does run was there before, and is judged by itself.
    const reservedOnly = start.committed === null
    orderStop(state, {
      plan,
      reason: trouble,
      drain: false,
      reservedOnly,
      nowMs: moment.nowMs,
      out,
    })
    endStart(state, { start, nowMs: moment.nowMs, out })
  } else if (start.committed !== null) {
    if (view?.status === 'ready') out.events.push({ kind: 'start-ended', group })
    else repeatCommit(state, step, start.committed)
  } else if (start.prepared.size === machinesOf(plan).length) commit(state, step)
  else repeatPrepare(state, step)
}

/** Given up: the next start of the deployment waits until the records show what became of this one. */
export function endStart(
  state: MachineState,
  { start, nowMs, out }: { start: Start; nowMs: number; out: Decision },
): void {
  const { group, deployment } = start.plan
  const held = holdOffAfter(state.heldOff.get(deployment), nowMs)
  out.events.push({ kind: 'start-ended', group })
  out.events.push({ kind: 'deployment-held-off', deployment, ...held })
}

/** Why the start cannot succeed any more, or null. */
function troubleWith(
  state: MachineState,
  { start, view, nowMs }: { start: Start; view: GroupView | undefined; nowMs: number },
): string | null {
  const { plan, committed, sinceMs } = start
  const failed = recentFailures(state, nowMs).find(
    (failure) => failure.group === plan.group && (failure.formation ?? 0) === plan.formation,
  )
  if (failed !== undefined) return failed.cause
  const lost = machinesOf(plan).find((machine) => !isReachable(state, machine))
  if (lost !== undefined) return `machine ${lost} was lost`
  if (nowMs - sinceMs <= limits.prepareMsMax) return null
  // Behind a commit, ranks must at least be seen; loading itself may take its time.
  if (committed === null || view === undefined) return stopReasons.late
  return view.status === 'broken' ? stopReasons.rankLost : null
}

function commit(state: MachineState, { start, moment, out }: StartStep): void {
  const { plan } = start
  const endpoints = placedRanks(plan).map(({ machine, rank }) => {
    const offered = start.prepared.get(machine)?.find((entry) => entry.rank === rank)
    return offered?.endpoint ?? null
  })
  const secret = `${moment.entropy}.${plan.group}.${plan.formation}`
  const commitment: Commitment = { endpoints, secret }
  orderCommit(state, { plan, commitment, to: machinesOf(plan), out })
  out.events.push({ kind: 'start-committed', group: plan.group, commitment })
}

function repeatPrepare(state: MachineState, { start, moment, out }: StartStep): void {
  if (moment.nowMs - start.orderedMs < limits.orderRepeatMs) return
  const { plan, wish, version } = start
  const to = machinesOf(plan).filter((machine) => !start.prepared.has(machine))
  orderPrepare(state, { plan, wish, version, to, out })
  out.events.push({ kind: 'start-ordered', group: plan.group })
}

/** To machines whose record still shows a mere reservation: they have not heard. */
function repeatCommit(
  state: MachineState,
  { start, groups, moment, out }: StartStep,
  commitment: Commitment,
): void {
  if (moment.nowMs - start.orderedMs < limits.orderRepeatMs) return
  const { plan } = start
  const view = groups.find((other) => other.group === plan.group)
  const hasNotHeard = ({ state: rankState, holding }: RankView): boolean =>
    rankState === 'reserved' || (holding?.plan.formation ?? 0) < plan.formation
  const waiting = view?.ranks.filter(hasNotHeard) ?? []
  const to = [...new Set(waiting.map((rank) => rank.machine))]
  orderCommit(state, { plan, commitment, to, out })
  out.events.push({ kind: 'start-ordered', group: plan.group })
}
