// The other machines, reachable over one or more links. Delivery is best effort; the core copes.
import type { ClusterMessage, Heartbeat } from '../core/cluster/messages.ts'
import type { MachineId } from '../core/ids.ts'
import type { GenerationMessage } from '../wire/generation-messages.ts'

export interface PeerNetworkEvents {
  heartbeat(from: MachineId, link: string, beat: Heartbeat): void
  linkLost(peer: MachineId, link: string): void
  clusterMessage(from: MachineId, message: ClusterMessage): void
  generationMessage(from: MachineId, message: GenerationMessage): void
}

export interface PeerNetwork {
  listen(events: PeerNetworkEvents): void
  /** On every link to every connected peer. */
  beat(beat: Heartbeat): void
  sendCluster(to: MachineId, message: ClusterMessage): void
  /** False when no link to that machine is up: the caller must not wait for an answer. */
  sendGeneration(to: MachineId, message: GenerationMessage): boolean
}
