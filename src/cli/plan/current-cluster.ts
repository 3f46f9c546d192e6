// The cluster at hand, as the planner wants it. Asking the daemon is its business; until one answers
// there is none, and the command says so.
import type { MeasuredWorld, PlanLink, PlanMachine } from '../../core/plan/types.ts'

export interface ClusterAtHand {
  readonly machines: readonly PlanMachine[]
  readonly links: readonly PlanLink[]
  readonly worlds: readonly MeasuredWorld[]
}

/** Null when no daemon runs on this machine. */
export type CurrentCluster = () => Promise<ClusterAtHand | null>

export const noDaemon: CurrentCluster = () => Promise.resolve(null)
