// From what runs to what is wanted: which groups go, and which deployments get another one.
import type { Decision } from '../cluster/decision.ts'
import { type WantedDeployment, isDeploymentRemoved, isDrained } from '../cluster/desired.ts'
import { machinesOf } from '../cluster/group-plan.ts'
import type { GroupView, RankView } from '../cluster/groups.ts'
import { compareEpochs } from '../cluster/record.ts'
import {
  type MachineState,
  type Moment,
  acceptsNow,
  drainingPhase,
  isHeldOff,
  recentFailures,
} from '../cluster/state.ts'
import { type DeploymentId, type GroupId, type MachineId, groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import { hearEachOther } from '../membership/view.ts'
import { adviceFor } from './advice.ts'
import { readinessOf } from './backoff.ts'
import { candidateRecords } from './candidates.ts'
import {
  type StopReason,
  beginStartOf,
  orderFetch,
  orderLeftoversStop,
  orderStop,
  stopReasons,
} from './orders.ts'
import { placeDeployment } from './placement.ts'
import { planReform } from './reform.ts'
import { isAsWished } from './shapes.ts'
import { chooseBackends } from './world-backend.ts'
import { endStart } from './starts.ts'
import { planted } from '../planted.ts'

/** Groups of removed deployments, and what is left of broken or abandoned ones, are taken down. */
export function stopUnwanted(
  state: MachineState,
  { view, nowMs, out }: { view: GroupView; nowMs: number; out: Decision },
): void {
  if (view.leftovers.length > 0 && view.status === 'ready')
    orderLeftoversStop(state, { view, nowMs, out })
  if (state.starts.has(view.group)) return
  const why = unwantedBecause(state, view, nowMs)
  if (why === null) return
  const { drain } = why
  // Those that are already going need no order, unless they take their time over a group that is no more.
  const isGoing = ({ holding }: RankView): boolean =>
    holding === null || (holding.state === 'stopping' && (drain || holding.phase !== drainingPhase))
  if (!view.ranks.every(isGoing)) orderStop(state, { plan: view.plan, ...why, nowMs, out })
}

/** A group that lost a part is put together again where that is possible; true when it is or will be. */
export function mend(
  state: MachineState,
  step: { view: GroupView; groups: readonly GroupView[]; nowMs: number; out: Decision },
): boolean {
  const { view, out, nowMs } = step
  if (view.status !== 'broken' || state.starts.has(view.group)) return false
  if (isDeploymentRemoved(state.registers, view.deployment)) return false
  // Somebody refused or was lost on the way: then it starts from the beginning.
  if (isHeldOff(state, view.deployment, nowMs)) return false
  if (view.ranks.some((rank) => isJustBack(state, rank.machine, nowMs))) return true
  const reform = planReform(state, view, step)
  if (reform.kind === 'impossible') return false
  if (reform.kind === 'wait') return true
  // One start at a time per round: the next one must see the memory this one takes.
  if (out.events.some((event) => event.kind === 'start-begun')) return true
  const { plan, wish } = reform
  beginStartOf(state, { plan, wish, out })
  const about = { group: plan.group, formation: plan.formation }
  out.effects.push({ kind: 'note', level: 'info', text: 'a group is put together again', about })
  return true
}

function unwantedBecause(
  state: MachineState,
  { deployment, ranks, status }: GroupView,
  nowMs: number,
): StopReason | null {
  if (isDeploymentRemoved(state.registers, deployment))
    return { reason: stopReasons.unloaded, drain: status !== 'broken' }
  if (planted.startNotAborted) return null
  if (ranks.some((rank) => isJustBack(state, rank.machine, nowMs))) return null
  // An earlier coordinator reserved it and can no longer commit; waiting for it to expire helps nobody.
  if (ranks.some((rank) => rank.state === 'reserved'))
    return { reason: stopReasons.abandoned, drain: false, reservedOnly: true }
  if (status === 'broken') return { reason: stopReasons.rankLost, drain: false }
  // One rank is on its way out, perhaps finishing its answers: the others follow as gently.
  return status === 'stopping' ? { reason: stopReasons.rankLost, drain: true } : null
}

/** It was gone a moment ago: its older words may arrive before its present ones. */
function isJustBack(state: MachineState, machine: MachineId, nowMs: number): boolean {
  const peer = state.peers.get(machine)
  return peer?.status === 'alive' && nowMs - peer.statusSinceMs < limits.returnPatienceMs
}

interface Reconciliation {
  readonly deployment: WantedDeployment
  readonly groups: readonly GroupView[]
  /** Those that are about to be put together again: what they answer needs no new group meanwhile. */
  readonly mending: ReadonlySet<GroupId>
  readonly moment: Moment
  readonly out: Decision
}

export function reconcile(state: MachineState, step: Reconciliation): void {
  const { deployment, moment, out } = step
  const { nowMs } = moment
  const own = step.groups.filter((group) => group.deployment === deployment.id)
  const leaves = (group: GroupView): boolean =>
    isLeaving(state, group) || isOutdated(group, deployment)
  const serving = own.filter((group) => group.status === 'ready' || group.status === 'forming')
  const wanted = deployment.replicas + (deployment.standby ? 1 : 0)
  const isSure = !serving.some(({ plan }) =>
    machinesOf(plan).some((machine) => isJustBack(state, machine, nowMs)),
  )
  for (const { plan } of isSure ? surplusOf(serving, wanted, leaves) : []) {
    orderStop(state, { plan, reason: stopReasons.surplus, drain: true, nowMs, out })
    const start = state.starts.get(plan.group)
    if (start !== undefined) endStart(state, { start, nowMs, out })
  }
  const staying = serving.filter((group) => !leaves(group))
  const seen = new Set(staying.map((group) => group.group))
  const starting = [...state.starts.values()].filter(
    ({ plan }) => plan.deployment === deployment.id && !seen.has(plan.group),
  )
  const mending = own.filter((group) => step.mending.has(group.group))
  const counted = planted.startsUncounted
    ? staying.filter((group) => group.status === 'ready').length
    : staying.length + starting.length + mending.length
  if (counted >= wanted) return
  if (isHeldOff(state, deployment.id, nowMs)) return
  if (awaitsRecord(state, nowMs)) return
  // One start at a time per round: the next one must see the memory this one takes.
  if (out.events.some((event) => event.kind === 'start-begun')) return
  const failures = recentFailures(state, nowMs)
  if (readinessOf(deployment, failures, nowMs).kind !== 'start-now') return
  const taken = [...serving, ...starting].flatMap(({ plan }) => machinesOf(plan))
  const failedOn = failures
    .filter((failure) => failure.deployment === deployment.id && !failure.excused)
    .map((failure) => failure.machine)
  const outdated = serving.filter((group) => isOutdated(group, deployment))
  const groups = wanted - staying.length - starting.length
  const advised = askPlanner(state, {
    deployment,
    groups,
    avoid: [...taken, ...failedOn],
    nowMs,
    out,
  })
  if (advised === null) return
  beginStart(state, { deployment: advised, taken, failedOn, outdated, moment, out })
}

/** Serves a wish that has since become another one. */
function isOutdated({ plan, ranks }: GroupView, deployment: WantedDeployment): boolean {
  const wish = Math.max(...ranks.map((rank) => rank.holding?.wish ?? Infinity))
  return wish < deployment.version.counter && !isAsWished(plan, deployment)
}

/** With the newest advice; null while the planner is asked. What already runs is never asked about. */
function askPlanner(
  state: MachineState,
  about: {
    deployment: WantedDeployment
    groups: number
    avoid: readonly MachineId[]
    nowMs: number
    out: Decision
  },
): WantedDeployment | null {
  const outcome = adviceFor(state, about)
  if (outcome.kind === 'go') return outcome.deployment
  if (outcome.kind === 'ask') {
    const { question } = outcome
    const { deployment, basis } = question
    about.out.events.push({ kind: 'advice-asked', deployment, basis })
    about.out.effects.push({ kind: 'advice-ask', question })
  }
  return null
}

function beginStart(
  state: MachineState,
  start: {
    deployment: WantedDeployment
    taken: readonly MachineId[]
    failedOn: readonly MachineId[]
    outdated: readonly GroupView[]
    moment: Moment
    out: Decision
  },
): void {
  const { deployment, taken, failedOn, outdated, out } = start
  const { nowMs } = start.moment
  const group = nextGroupId(state)
  const machines = candidateRecords(state)
  const connected = (a: MachineId, b: MachineId): boolean => hearEachOther(state, a, b)
  const placed = placeDeployment({ group, deployment, machines, taken, failedOn, connected })
  if (placed.kind === 'refused') {
    // No room beside the old ones: they finish their answers and go first.
    for (const { plan } of outdated)
      orderStop(state, { plan, reason: stopReasons.replaced, drain: true, nowMs, out })
    return
  }
  const { missing, source } = placed
  if (missing.length > 0 && source !== null) {
    orderFetch(state, { model: deployment.model, from: source, to: missing, out })
    const untilMs = nowMs + limits.fetchRepeatMs
    waitUntil(state, { deployment: deployment.id, untilMs, out })
    return
  }
  // A Mac holds one JACCL world: the one that is to be replaced goes first.
  const holding = outdated.filter(({ plan: { stages } }) =>
    stages.some(({ backend }) => backend === 'jaccl'),
  )
  for (const { plan } of holding)
    orderStop(state, { plan, reason: stopReasons.replaced, drain: true, nowMs, out })
  if (holding.length > 0) return
  const choice = chooseBackends(state, { deployment, plan: placed.plan, nowMs })
  if (choice.kind !== 'plan') {
    if (choice.kind === 'ask') {
      out.events.push({ kind: 'facts-asked' })
      out.effects.push({ kind: 'facts-collect' })
    }
    const untilMs = nowMs + limits.orderRepeatMs
    waitUntil(state, { deployment: deployment.id, untilMs, out })
    return
  }
  beginStartOf(state, { plan: choice.plan, wish: deployment.version.counter, out })
}

/** Nobody refused anything; it only takes a moment. */
function waitUntil(
  state: MachineState,
  { deployment, untilMs, out }: { deployment: DeploymentId; untilMs: number; out: Decision },
): void {
  const refusals = state.heldOff.get(deployment)?.refusals ?? 0
  out.events.push({ kind: 'deployment-held-off', deployment, untilMs, refusals })
}

/** A machine has just come and may already run what we are about to start. */
function awaitsRecord(state: MachineState, nowMs: number): boolean {
  for (const peer of state.peers.values()) {
    const isNew = nowMs - peer.statusSinceMs < limits.recordPatienceMs
    if (peer.status === 'alive' && peer.record === null && isNew) return true
  }
  return false
}

/**
 * What is behind the wanted number. Groups on machines that are to be emptied count only until others
 * are ready in their place; among equals the one that has been ready longest stays.
 */
export function surplusOf(
  serving: readonly GroupView[],
  wanted: number,
  leaves: (group: GroupView) => boolean,
): readonly GroupView[] {
  const order = [...serving].sort((a, b) => {
    if (a.status !== b.status) return a.status === 'ready' ? -1 : 1
    return a.sinceMs - b.sinceMs || compareEpochs(a.epoch, b.epoch) || (a.group < b.group ? -1 : 1)
  })
  const staying = order.filter((group) => !leaves(group))
  const kept = staying.slice(0, wanted)
  const uncovered = wanted - kept.filter((group) => group.status === 'ready').length
  const leaving = order.filter(leaves)
  return [...staying.slice(wanted), ...leaving.slice(uncovered)]
}

function isLeaving(state: MachineState, group: GroupView): boolean {
  return machinesOf(group.plan).some((machine) => {
    if (isDrained(state.registers, machine)) return true
    if (machine === state.self.id) return !acceptsNow(state).ok
    return state.peers.get(machine)?.record?.accepts.ok === false
  })
}

/** Never used before: the boot keeps apart what a machine restored from a backup counts a second time. */
function nextGroupId(state: MachineState): GroupId {
  const { epoch, startsBegun } = state.term ?? { epoch: state.epochSeen, startsBegun: 0 }
  const { boot } = state.self
  if (planted.groupIdReused) return groupId(`g${epoch.counter}`)
  return groupId(
    `g${epoch.counter}.${startsBegun}.${epoch.machine.slice(0, 8)}.${boot.slice(0, 6)}`,
  )
}
