// Everything that can reach a machine's loop from outside.
import type { Advice } from '../cluster/advice.ts'
import type { GroupPlan } from '../cluster/group-plan.ts'
import type { KnownFacts } from '../cluster/known-facts.ts'
import type { ClusterMessage, Heartbeat } from '../cluster/messages.ts'
import type { Endpoint } from '../cluster/record.ts'
import type { Registers } from '../cluster/registers.ts'
import type { SelfState } from '../cluster/state.ts'
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import type { JsonValue } from '../json.ts'

/** What the token path has seen of a rank since the last tick; tokens themselves never come here. */
export interface RankProgress {
  readonly group: GroupId
  readonly rank: number
  readonly step: number
  readonly busy: boolean
  readonly frameAgeMs: number
  readonly tokens: number
  readonly tokensPerSecond: number
  readonly activeBytes: number
  readonly queue: number
  /** When a request last began or ended, of a head that has had one. */
  readonly usedMs?: number
}

export type RankReport =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'progressed'; readonly phase: string; readonly fraction: number }
  | {
      readonly kind: 'ready'
      readonly contextTokens: number
      readonly activeBytes: number
      readonly loadMs?: number
    }
  /** It has lost a neighbour and waits to hear where the others are. */
  | { readonly kind: 'orphaned'; readonly cause: string }
  | { readonly kind: 'relinked' }
  /** It was to finish its answers, and has. */
  | { readonly kind: 'drained' }
  /** The rank said why before it went; the exit follows. */
  | { readonly kind: 'failed'; readonly cause: string }
  | {
      readonly kind: 'exited'
      readonly cause: string
      readonly tokens: number
      /** Only the head makes tokens: of the others it is known how many steps they made. */
      readonly steps?: number
    }

export interface RegisterWrite {
  readonly key: string
  readonly value: JsonValue | undefined
}

export type MachineInput =
  | {
      readonly kind: 'tick'
      /** How much later than planned this tick came. */
      readonly lagMs: number
      readonly progress: readonly RankProgress[]
    }
  /** The machine was asleep; told before anything else that happens after waking. */
  | { readonly kind: 'woken'; readonly sleptMs: number }
  | {
      readonly kind: 'heartbeat'
      readonly from: MachineId
      readonly link: string
      readonly beat: Heartbeat
    }
  | { readonly kind: 'link-lost'; readonly peer: MachineId; readonly link: string }
  | { readonly kind: 'message'; readonly from: MachineId; readonly message: ClusterMessage }
  | {
      readonly kind: 'rank-report'
      readonly group: GroupId
      readonly rank: number
      readonly report: RankReport
    }
  | {
      readonly kind: 'endpoints-reserved'
      readonly plan: GroupPlan
      readonly to: MachineId
      readonly outcome:
        | {
            readonly ok: true
            readonly endpoints: readonly { readonly rank: number; readonly endpoint: Endpoint }[]
          }
        | { readonly ok: false; readonly reason: string }
    }
  | { readonly kind: 'registers-write'; readonly writes: readonly RegisterWrite[] }
  /** The whole desired state is exchanged: joining or leaving a cluster. */
  | { readonly kind: 'registers-replace'; readonly registers: Registers }
  | { readonly kind: 'facts-learned'; readonly facts: Pick<KnownFacts, 'machines' | 'silent'> }
  | {
      readonly kind: 'advice-learned'
      readonly deployment: DeploymentId
      readonly basis: string
      readonly advice: Advice
    }
  /** The cluster was probed at that wall time, by this machine or another. */
  | { readonly kind: 'measurements-taken'; readonly atMs: number }
  | { readonly kind: 'self-change'; readonly change: Partial<SelfState> }
