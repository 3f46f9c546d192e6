// Looks at the machine it runs on. It never changes anything and never throws because a tool is
// missing or strange: whatever could not be learned is a fact that says why.
import type { MachineFacts, PathFacts } from '../core/machine-facts/machine.ts'

export interface Prober {
  probeMachine(): Promise<MachineFacts>
  /** Routes and reachability towards addresses of peers. */
  probePaths(targets: readonly PathTarget[]): Promise<readonly PathFacts[]>
}

export interface PathTarget {
  readonly peer: string
  readonly address: string
  /** Where a peer of ours listens; null when only the route is asked for. */
  readonly port: number | null
}
