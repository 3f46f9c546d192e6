// Sorts what arrives from other machines: beats and cluster messages to the loop, tokens past it.
import type { MachineId } from '../core/ids.ts'
import { roster } from '../core/cluster/desired.ts'
import type { MachineState, PeerStatus } from '../core/cluster/state.ts'
import type { Clock } from '../ports/clock.ts'
import type { PeerNetwork } from '../ports/peer-network.ts'
import { AttemptServer } from './attempt-server.ts'
import type { AttemptHost } from './attempts.ts'
import type { Machine } from './machine.ts'
import type { RelayEnd } from './ranks.ts'
import { Relays } from './relays.ts'
import { RemoteAttempts } from './remote-attempts.ts'

export interface Traffic {
  /** Where attempts on a machine are submitted, this one included. */
  hostOn(machine: MachineId): AttemptHost
}

export function wireTraffic(parts: {
  machine: Machine
  network: PeerNetwork
  local: AttemptHost
  clock: Clock
  /** The ranks here, when they may have to talk to ranks elsewhere. */
  ranks?: RelayEnd
}): Traffic {
  const { machine, network, local, clock, ranks } = parts
  const remote = new RemoteAttempts({
    clock,
    send: (to, message) => network.sendGeneration(to, message),
  })
  const server = new AttemptServer({
    clock,
    host: local,
    send: (to, message) => void network.sendGeneration(to, message),
  })
  const relays = ranks === undefined ? null : joinRelays({ ranks, network, clock })
  network.listen({
    heartbeat: (from, link, beat) => machine.post({ kind: 'heartbeat', from, link, beat }),
    clusterMessage: (from, message) => machine.post({ kind: 'message', from, message }),
    linkLost: (peer, link) => {
      machine.post({ kind: 'link-lost', peer, link })
      remote.linkLost(peer)
    },
    generationMessage: (from, message) => {
      // The roster may have changed since the connection was made.
      if (!roster(machine.state.registers).has(from)) return
      if (message.kind === 'rank-relay' || message.kind === 'rank-relay-ack') {
        relays?.take(from, message)
        return
      }
      server.take(from, message)
      remote.take(from, message)
    },
  })
  const known = new Map<MachineId, { status: PeerStatus; boot: string }>()
  machine.subscribe((state) => {
    for (const gone of newlyGone(state, known)) {
      remote.loseMachine(gone, `machine ${gone.slice(0, 8)}… was lost`)
      server.loseMachine(gone)
    }
  })
  return { hostOn: (id) => (id === machine.state.self.id ? local : remote.hostOn(id)) }
}

function joinRelays(parts: { ranks: RelayEnd; network: PeerNetwork; clock: Clock }): Relays {
  const { ranks, network, clock } = parts
  const relays = new Relays({
    clock,
    send: (to, message) => void network.sendGeneration(to, message),
    deliver: (to, from, body) => ranks.hearRelay(to, from, body),
    giveUp: (group, cause) => ranks.failGroup(group, cause),
  })
  ranks.relayThrough(relays)
  return relays
}

/** Machines that have died, or come back as a new life, since the last look. */
function newlyGone(
  state: MachineState,
  known: Map<MachineId, { status: PeerStatus; boot: string }>,
): readonly MachineId[] {
  const gone: MachineId[] = []
  for (const id of known.keys()) if (!state.peers.has(id)) known.delete(id)
  for (const { id, status, boot } of state.peers.values()) {
    const before = known.get(id)
    if (before?.status === status && before.boot === boot) continue
    known.set(id, { status, boot })
    const died = status === 'dead' && before?.status !== 'dead'
    const reborn = before !== undefined && before.boot !== boot && before.status !== 'dead'
    if (died || reborn) gone.push(id)
  }
  return gone
}
