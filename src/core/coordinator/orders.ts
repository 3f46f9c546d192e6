// The orders a coordinator gives. Every one carries its epoch, and may have to be given more than once.
import type { Decision } from '../cluster/decision.ts'
import { type GroupPlan, type ModelRef, headMachine, machinesOf } from '../cluster/group-plan.ts'
import type { GroupView } from '../cluster/groups.ts'
import type { Epoch } from '../cluster/record.ts'
import type { Commitment, MachineState, Start } from '../cluster/state.ts'
import type { GroupId, MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { planted } from '../planted.ts'

/** Why groups are stopped, in the words that people read in logs and on the page. */
export const stopReasons = {
  unloaded: 'the deployment was unloaded',
  rankLost: 'a rank of the group was lost',
  surplus: 'another group already serves this replica',
  replaced: 'another group serves the changed wish',
  replacedRank: 'another rank has taken its place',
  abandoned: 'its start was abandoned',
  late: 'not every machine answered in time',
} as const

export function epochOf(state: MachineState): Epoch {
  return state.term?.epoch ?? state.epochSeen
}

export function isReachable(state: MachineState, machine: MachineId): boolean {
  return machine === state.self.id || (state.peers.get(machine)?.status ?? 'dead') !== 'dead'
}

export interface StopReason {
  readonly reason: string
  /** Finish what is being answered first. */
  readonly drain: boolean
  /** Only reservations are given back: what we know may be older than a commit that was obeyed. */
  readonly reservedOnly?: boolean
}

/** Stops a group everywhere; said again each second until the records show that it is gone. */
export function orderStop(
  state: MachineState,
  stop: StopReason & { plan: GroupPlan; nowMs: number; out: Decision },
): void {
  const { plan, reason, drain, nowMs, out } = stop
  const { reservedOnly = false } = stop
  const scope = reservedOnly ? { reservedOnly } : {}
  const { group, deployment } = plan
  if (wasTold(state, { group, reservedOnly, nowMs }) && !planted.stopStorm) return
  out.events.push({ kind: 'stop-ordered', group, reservedOnly })
  for (const to of machinesOf(plan)) {
    if (!isReachable(state, to)) continue
    const epoch = epochOf(state)
    const told = { epoch, group, deployment, reason, drain } as const
    const message = { kind: 'group-stop', ...told, ...scope } as const
    out.effects.push({ kind: 'message-send', to, message })
  }
}

/** Whether it was ordered a moment ago. Giving back reservations is the lesser order: it delays no stop. */
function wasTold(
  state: MachineState,
  { group, reservedOnly, nowMs }: { group: GroupId; reservedOnly: boolean; nowMs: number },
): boolean {
  const last = state.stops.get(group)
  if (last === undefined || nowMs - last.atMs >= limits.orderRepeatMs) return false
  return reservedOnly || !last.reservedOnly
}

/** To machines that came back with a rank whose place is taken: it goes, the group does not. */
export function orderLeftoversStop(
  state: MachineState,
  stop: { view: GroupView; nowMs: number; out: Decision },
): void {
  const { view, nowMs, out } = stop
  const { group, deployment } = view
  if (wasTold(state, { group, reservedOnly: false, nowMs })) return
  out.events.push({ kind: 'stop-ordered', group, reservedOnly: false })
  for (const to of view.leftovers) {
    const message = {
      kind: 'group-stop',
      epoch: epochOf(state),
      group,
      deployment,
      reason: stopReasons.replacedRank,
      drain: false,
      except: view.planHash,
    } as const
    out.effects.push({ kind: 'message-send', to, message })
  }
}

export function orderFetch(
  state: MachineState,
  order: { model: ModelRef; from: MachineId; to: readonly MachineId[]; out: Decision },
): void {
  const { model, from, out } = order
  for (const to of order.to) {
    const message = { kind: 'model-fetch', epoch: epochOf(state), model, from } as const
    out.effects.push({ kind: 'message-send', to, message })
  }
}

/** Begins a start: it is remembered, and every machine of the plan is asked to reserve what it needs. */
export function beginStartOf(
  state: MachineState,
  { plan, wish, out }: { plan: GroupPlan; wish: number; out: Decision },
): void {
  const version = versionOf(state, headMachine(plan))
  out.events.push({ kind: 'start-begun', plan, wish, version })
  orderPrepare(state, { plan, wish, version, to: machinesOf(plan), out })
}

export function orderPrepare(
  state: MachineState,
  order: Pick<Start, 'plan' | 'wish' | 'version'> & { to: readonly MachineId[]; out: Decision },
): void {
  const { plan, wish, version, out } = order
  const epoch = epochOf(state)
  for (const to of order.to) {
    const message = { kind: 'group-prepare', epoch, wish, plan, version } as const
    out.effects.push({ kind: 'message-send', to, message })
  }
}

/** Placement joins only machines of one version; the head's is everyone's. */
function versionOf(state: MachineState, machine: MachineId): string {
  return state.peers.get(machine)?.record?.version ?? state.self.version
}

export function orderCommit(
  state: MachineState,
  order: {
    plan: GroupPlan
    commitment: Commitment
    to: readonly MachineId[]
    out: Decision
  },
): void {
  const { group, formation } = order.plan
  const epoch = epochOf(state)
  for (const to of order.to) {
    const message = { kind: 'group-commit', epoch, group, formation, ...order.commitment } as const
    order.out.effects.push({ kind: 'message-send', to, message })
  }
}
