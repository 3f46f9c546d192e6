// What a coordinator makes of the answers to its orders.
import { type Decision, decision } from '../cluster/decision.ts'
import { machinesOf } from '../cluster/group-plan.ts'
import type { GroupMessage } from '../cluster/messages.ts'
import type { MachineState } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { isReachable, stopReasons } from './orders.ts'
import { endStart } from './starts.ts'

type Answer<Kind extends GroupMessage['kind']> = {
  readonly from: MachineId
  readonly message: Extract<GroupMessage, { kind: Kind }>
}

export function takePrepared(
  state: MachineState,
  { from, message }: Answer<'group-prepared'>,
): Decision {
  const out = decision()
  const { group, endpoints } = message
  const start = state.starts.get(group)
  const isAsked =
    start !== undefined &&
    start.plan.formation === message.formation &&
    machinesOf(start.plan).includes(from)
  if (isAsked) out.events.push({ kind: 'start-prepared', group, machine: from, endpoints })
  return out
}

/** One refusal ends the whole start: the others give back what they reserved. */
export function takeRefusal(
  state: MachineState,
  { from, message }: Answer<'group-refused'>,
  nowMs: number,
): Decision {
  const out = decision()
  const { group, formation } = message
  // The highest epoch anybody has seen comes back with a refusal; the next term goes above it.
  out.events.push({ kind: 'epoch-seen', epoch: message.epochSeen })
  const start = state.starts.get(group)
  if (start === undefined || state.term === null) return out
  if (start.plan.formation !== formation || start.committed !== null) return out
  const { deployment } = start.plan
  endStart(state, { start, nowMs, out })
  out.effects.push({
    kind: 'note',
    level: 'warn',
    text: 'a machine refused the plan',
    about: { group, machine: from, reason: message.reason },
  })
  const { epoch } = state.term
  const reason = stopReasons.abandoned
  for (const to of machinesOf(start.plan)) {
    if (to === from || !isReachable(state, to)) continue
    const told = { epoch, group, deployment, reason, drain: false, reservedOnly: true } as const
    const stop = { kind: 'group-stop', ...told } as const
    out.effects.push({ kind: 'message-send', to, message: stop })
  }
  return out
}
