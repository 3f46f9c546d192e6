// Sorts what arrives from other machines: beats and cluster messages to the loop, tokens past it.
import type { MachineId } from '../core/ids.ts'
import type { MachineState, PeerStatus } from '../core/cluster/state.ts'
import type { Clock } from '../ports/clock.ts'
import type { PeerNetwork } from '../ports/peer-network.ts'
import { AttemptServer } from './attempt-server.ts'
import type { AttemptHost } from './attempts.ts'
import type { Machine } from './machine.ts'
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
}): Traffic {
  const { machine, network, local, clock } = parts
  const remote = new RemoteAttempts({
    clock,
    send: (to, message) => network.sendGeneration(to, message),
  })
  const server = new AttemptServer({
    clock,
    host: local,
    send: (to, message) => void network.sendGeneration(to, message),
  })
  network.listen({
    heartbeat: (from, link, beat) => machine.post({ kind: 'heartbeat', from, link, beat }),
    clusterMessage: (from, message) => machine.post({ kind: 'message', from, message }),
    linkLost: (peer, link) => {
      machine.post({ kind: 'link-lost', peer, link })
      remote.linkLost(peer)
    },
    generationMessage: (from, message) => {
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

/** Machines that have died, or come back as a new life, since the last look. */
function newlyGone(
  state: MachineState,
  known: Map<MachineId, { status: PeerStatus; boot: string }>,
): readonly MachineId[] {
  const gone: MachineId[] = []
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
