// How machines keep each other current: beats carry digests, and differences are settled at leisure.
import { type Decision, decision } from '../cluster/decision.ts'
import type { Heartbeat } from '../cluster/messages.ts'
import type { MachineState } from '../cluster/state.ts'
import type { Register, Registers } from '../cluster/registers.ts'
import type { MachineId } from '../ids.ts'
import { planted } from '../planted.ts'
import { isAlone, reachable } from '../membership/view.ts'

/** Differences are settled at most this often per peer: a stale beat must not start a storm. */
const settleEveryMs = 1000
/** Nobody answers: what we have is all there is. */
const catchUpPatienceMs = 4000

export function ownBeat(state: MachineState): Heartbeat {
  const hears: MachineId[] = []
  for (const peer of state.peers.values()) if (peer.status !== 'dead') hears.push(peer.id)
  return {
    boot: state.self.boot,
    incarnation: state.self.incarnation,
    revision: state.self.revision,
    digest: state.registersDigest,
    epoch: state.epochSeen,
    role: state.self.role,
    hears,
    follows: state.view.coordinator,
  }
}

/** A beat came in: note it, and ask for or send what it shows to be different. */
export function greet(
  state: MachineState,
  { from, link, beat }: { from: MachineId; link: string; beat: Heartbeat },
  nowMs: number,
): Decision {
  const out = decision()
  // Its epoch is noted with it, not taken over: only obeying an order raises our own, or two leaders
  // who never meet would outbid each other through everybody between them.
  out.events.push({ kind: 'heartbeat-heard', from, link, beat })
  const peer = state.peers.get(from)
  const have = peer !== undefined && peer.boot === beat.boot ? (peer.record?.revision ?? -1) : -1
  if (have < beat.revision && nowMs - (peer?.askedMs ?? -Infinity) >= settleEveryMs) {
    out.events.push({ kind: 'peer-contacted', peer: from, about: 'record' })
    out.effects.push({ kind: 'message-send', to: from, message: { kind: 'record-ask' } })
  }
  if (beat.digest === state.registersDigest) {
    if (!state.caughtUp) out.events.push({ kind: 'caught-up' })
  } else if (nowMs - (peer?.syncedMs ?? -Infinity) >= settleEveryMs) {
    out.events.push({ kind: 'peer-contacted', peer: from, about: 'registers' })
    const entries = told(state.registers)
    out.effects.push({ kind: 'message-send', to: from, message: { kind: 'registers', entries } })
  }
  return out
}

/** All of it: a tombstone says as much as a value. */
function told(registers: Registers): readonly (readonly [string, Register])[] {
  const entries = [...registers]
  return planted.tombstoneUntold ? entries.filter(([, { value }]) => value !== undefined) : entries
}

/** With nobody to ask, a machine may write after a moment's patience. */
export function catchUp(state: MachineState, nowMs: number, out: Decision): void {
  if (state.caughtUp) return
  const waited = nowMs - state.startedMs >= catchUpPatienceMs
  // Whoever does not hear us cannot tell us what we missed either.
  if (isAlone(state) || (waited && reachable(state).size === 1))
    out.events.push({ kind: 'caught-up' })
}
