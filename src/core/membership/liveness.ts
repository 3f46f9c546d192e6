// Who is alive, suspect or dead, from when each peer was last heard.
import type { ClusterEvent } from '../cluster/events.ts'
import { roster } from '../cluster/desired.ts'
import type { MachineState, PeerState, PeerStatus } from '../cluster/state.ts'
import { limits } from '../limits.ts'
import { planted } from '../planted.ts'

export function judge(peer: PeerState, nowMs: number): PeerStatus {
  const silentMs = nowMs - peer.heardMs
  if (peer.resetMs !== null && nowMs - peer.resetMs >= limits.resetGraceMs) return 'dead'
  if (silentMs >= limits.deadAfterMs) return 'dead'
  if (silentMs >= limits.suspectAfterMs) return 'suspect'
  return 'alive'
}

/** Verdicts that have changed, and peers long silent that the roster no longer names. */
export function judgePeers(state: MachineState, nowMs: number): readonly ClusterEvent[] {
  const events: ClusterEvent[] = []
  for (const peer of state.peers.values()) {
    const status = judge(peer, nowMs)
    if (status !== peer.status) events.push({ kind: 'peer-judged', peer: peer.id, status })
    else if (status === 'dead' && isGhost(state, peer, nowMs))
      events.push({ kind: 'peer-forgotten', peer: peer.id })
  }
  return events
}

function isGhost(state: MachineState, peer: PeerState, nowMs: number): boolean {
  if (planted.ghostKept) return false
  return nowMs - peer.heardMs >= limits.ghostForgetMs && !roster(state.registers).has(peer.id)
}
