// How machines keep each other current: beats carry digests, and differences are settled at leisure.
import { type Decision, decision } from '../cluster/decision.ts'
import { roster } from '../cluster/desired.ts'
import type { Heartbeat } from '../cluster/messages.ts'
import { compareEpochs } from '../cluster/record.ts'
import type { MachineState } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'

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
    hears,
  }
}

/** A beat came in: note it, and ask for or send what it shows to be different. */
export function greet(
  state: MachineState,
  { from, link, beat }: { from: MachineId; link: string; beat: Heartbeat },
  nowMs: number,
): Decision {
  const out = decision()
  out.events.push({ kind: 'heartbeat-heard', from, link, beat })
  if (compareEpochs(beat.epoch, state.epochSeen) > 0) {
    out.events.push({ kind: 'epoch-seen', epoch: beat.epoch })
  }
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
    const entries = [...state.registers]
    out.effects.push({ kind: 'message-send', to: from, message: { kind: 'registers', entries } })
  }
  return out
}

/** With nobody to ask, a machine may write after a moment's patience. */
export function catchUp(state: MachineState, nowMs: number, out: Decision): void {
  if (state.caughtUp) return
  const alone = roster(state.registers).size <= 1 && state.peers.size === 0
  const waited = nowMs - state.startedMs >= catchUpPatienceMs
  const anyoneAlive = [...state.peers.values()].some((peer) => peer.status !== 'dead')
  if (alone || (waited && !anyoneAlive)) out.events.push({ kind: 'caught-up' })
}
