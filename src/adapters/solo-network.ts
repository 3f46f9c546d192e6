// No other machines: a cluster of one.
import type { PeerNetwork } from '../ports/peer-network.ts'

export const soloNetwork: PeerNetwork = {
  listen: () => undefined,
  beat: () => undefined,
  sendCluster: () => undefined,
  sendGeneration: () => false,
}
