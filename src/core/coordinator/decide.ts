// What the coordinator does next: settle the view, hold an epoch, bring wanted groups up and others down.
// It only advises; every agent checks the epoch and its own memory before it obeys.
import { type Decision, decision } from '../cluster/decision.ts'
import {
  type WantedDeployment,
  isDeploymentRemoved,
  wantedDeployments,
} from '../cluster/desired.ts'
import { type GroupPlan, machinesOf, placedRanks } from '../cluster/group-plan.ts'
import { type GroupView, groupsSeen } from '../cluster/groups.ts'
import {
  type MachineState,
  type Moment,
  type Start,
  ownRecord,
  recentFailures,
} from '../cluster/state.ts'
import { type Epoch, type MachineRecord, compareEpochs } from '../cluster/record.ts'
import { type DeploymentId, type GroupId, type MachineId, groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import { component, highestEpoch, reachable, settledCoordinator } from '../membership/view.ts'
import { readinessOf } from './backoff.ts'
import { placeDeployment } from './placement.ts'

export function decideCoordinator(state: MachineState, moment: Moment): Decision {
  const out = decision()
  const members = component(state)
  if (members.join() !== state.view.members.join()) {
    out.events.push({ kind: 'view-changed', members })
    out.again = true
    return out
  }
  if (settledCoordinator(state, moment.nowMs) !== state.self.id) {
    if (state.term !== null) out.events.push({ kind: 'term-ended' })
    return out
  }
  const highest = highestEpoch(state, members)
  if (state.term === null || compareEpochs(state.term.epoch, highest) < 0) {
    beginTerm(state, highest, out)
    return out
  }
  const groups = groupsSeen(state)
  for (const start of state.starts.values()) advanceStart(state, { start, groups, moment, out })
  for (const group of groups) stopUnwanted(state, group, out)
  for (const deployment of wantedDeployments(state.registers)) {
    reconcile(state, { deployment, groups, moment, out })
  }
  return out
}

/** The step writes the journal before its messages: the epoch is on disk before the first order. */
function beginTerm(state: MachineState, highest: Epoch, out: Decision): void {
  const epoch = { counter: highest.counter + 1, machine: state.self.id }
  out.events.push({ kind: 'term-begun', epoch })
  out.again = true
  out.effects.push({
    kind: 'note',
    level: 'info',
    text: 'this machine coordinates the cluster',
    about: { epoch: epoch.counter },
  })
}

interface StartStep {
  readonly start: Start
  readonly groups: readonly GroupView[]
  readonly moment: Moment
  readonly out: Decision
}

function advanceStart(state: MachineState, { start, groups, moment, out }: StartStep): void {
  const { plan } = start
  const ageMs = moment.nowMs - start.sinceMs
  const view = groups.find((group) => group.group === plan.group)
  const lost = machinesOf(plan).find((machine) => !isReachable(state, machine))
  const failed = recentFailures(state, moment.nowMs).find((failure) => failure.group === plan.group)
  const overdue = start.committed
    ? ageMs > limits.prepareMsMax && (view === undefined || view.status === 'broken')
    : ageMs > limits.prepareMsMax
  if (lost !== undefined || failed !== undefined || overdue) {
    const reason =
      failed?.cause ??
      (lost === undefined ? 'not every machine answered in time' : `machine ${lost} was lost`)
    sendStop(state, { plan, reason, drain: false, out })
    out.events.push({ kind: 'start-ended', group: plan.group })
    return
  }
  if (start.committed) {
    if (view?.status === 'ready') out.events.push({ kind: 'start-ended', group: plan.group })
    return
  }
  if (start.prepared.size === machinesOf(plan).length) commit(state, start, moment, out)
}

function commit(state: MachineState, start: Start, moment: Moment, out: Decision): void {
  const { plan } = start
  const endpoints = placedRanks(plan).map(({ machine, rank }) => {
    const offered = start.prepared.get(machine)?.find((entry) => entry.rank === rank)
    return offered?.endpoint ?? null
  })
  const secret = `${moment.entropy}.${plan.group}.${plan.formation}`
  const { group, formation } = plan
  for (const to of machinesOf(plan)) {
    out.effects.push({
      kind: 'message-send',
      to,
      message: { kind: 'group-commit', epoch: epochOf(state), group, formation, endpoints, secret },
    })
  }
  out.events.push({ kind: 'start-committed', group })
}

/** Groups of removed deployments, and the remains of broken ones, are taken down. */
function stopUnwanted(state: MachineState, view: GroupView, out: Decision): void {
  if (state.starts.has(view.group) || view.status === 'stopping') return
  const { plan } = view
  if (isDeploymentRemoved(state.registers, view.deployment)) {
    sendStop(state, { plan, reason: 'the deployment was unloaded', drain: true, out })
  } else if (view.status === 'broken') {
    const onlyReserved = view.ranks.every(
      (rank) => rank.state === 'missing' || rank.state === 'reserved',
    )
    // A reservation that an earlier coordinator left behind expires by itself.
    if (!onlyReserved)
      sendStop(state, { plan, reason: 'a rank of the group was lost', drain: false, out })
  }
}

interface Reconciliation {
  readonly deployment: WantedDeployment
  readonly groups: readonly GroupView[]
  readonly moment: Moment
  readonly out: Decision
}

function reconcile(state: MachineState, step: Reconciliation): void {
  const { deployment, groups, moment, out } = step
  const own = groups.filter((group) => group.deployment === deployment.id)
  const serving = own.filter((group) => group.status === 'ready' || group.status === 'forming')
  const starting = [...state.starts.values()].filter(
    (start) =>
      start.plan.deployment === deployment.id &&
      !serving.some((group) => group.group === start.plan.group),
  )
  const wanted = deployment.replicas + (deployment.standby ? 1 : 0)
  if (serving.length > wanted) {
    for (const surplus of surplusOf(serving, wanted)) {
      const reason = 'another group already serves this replica'
      sendStop(state, { plan: surplus.plan, reason, drain: true, out })
    }
    return
  }
  if (serving.length + starting.length >= wanted) return
  if (own.some((group) => group.status === 'broken' || group.status === 'stopping')) return
  const readiness = readinessOf(deployment, recentFailures(state, moment.nowMs), moment.nowMs)
  if (readiness.kind !== 'start-now') return
  // One start at a time per round: the next one must see the memory this one takes.
  if (out.events.some((event) => event.kind === 'start-begun')) return
  beginStart(state, { deployment, taken: machinesServing(serving), out })
}

function beginStart(
  state: MachineState,
  {
    deployment,
    taken,
    out,
  }: { deployment: WantedDeployment; taken: readonly MachineId[]; out: Decision },
): void {
  const placed = placeDeployment({
    group: nextGroupId(state),
    deployment,
    machines: candidateRecords(state),
    taken,
  })
  if (placed.kind === 'refused') return
  const wish = deployment.version.counter
  out.events.push({ kind: 'start-begun', plan: placed.plan, wish })
  for (const to of machinesOf(placed.plan)) {
    out.effects.push({
      kind: 'message-send',
      to,
      message: { kind: 'group-prepare', epoch: epochOf(state), wish, plan: placed.plan },
    })
  }
}

/** Machines that may be given ranks now: heard in both directions, with a record that says what they have. */
export function candidateRecords(state: MachineState): readonly MachineRecord[] {
  const found = [ownRecord(state)]
  const near = reachable(state)
  for (const peer of state.peers.values()) {
    if (peer.status === 'alive' && peer.record !== null && near.has(peer.id))
      found.push(peer.record)
  }
  return found
}

/** Oldest and readiest first; what is behind the wanted number is surplus. */
function surplusOf(serving: readonly GroupView[], wanted: number): readonly GroupView[] {
  const order = [...serving].sort((a, b) => {
    if (a.status !== b.status) return a.status === 'ready' ? -1 : 1
    return compareEpochs(a.epoch, b.epoch) || (a.group < b.group ? -1 : 1)
  })
  return order.slice(wanted)
}

function machinesServing(groups: readonly GroupView[]): readonly MachineId[] {
  return groups.flatMap((group) => machinesOf(group.plan))
}

function nextGroupId(state: MachineState): GroupId {
  const { epoch, startsBegun } = state.term ?? { epoch: state.epochSeen, startsBegun: 0 }
  return groupId(`g${epoch.counter}.${startsBegun}.${epoch.machine.slice(0, 8)}`)
}

function epochOf(state: MachineState): Epoch {
  return state.term?.epoch ?? state.epochSeen
}

function isReachable(state: MachineState, machine: MachineId): boolean {
  return machine === state.self.id || state.peers.get(machine)?.status !== 'dead'
}

function sendStop(
  state: MachineState,
  stop: { plan: GroupPlan; reason: string; drain: boolean; out: Decision },
): void {
  const { plan, reason, drain, out } = stop
  const { group, deployment }: { group: GroupId; deployment: DeploymentId } = plan
  for (const to of machinesOf(plan)) {
    if (!isReachable(state, to)) continue
    const message = {
      kind: 'group-stop',
      epoch: epochOf(state),
      group,
      deployment,
      reason,
      drain,
    } as const
    out.effects.push({ kind: 'message-send', to, message })
  }
}
