// What a machine says of itself. Only the machine writes its own record; others keep the newest.
import type { DeploymentId, GroupId, MachineId, ModelDigest } from '../ids.ts'
import type { GroupPlan, ModelRef } from './group-plan.ts'
import { planted } from '../planted.ts'

/** Always-on machines serve and coordinate; "sometimes" machines are laptops; clients hold no rank. */
export const roles = ['always', 'sometimes', 'client'] as const
export type Role = (typeof roles)[number]

export interface Epoch {
  readonly counter: number
  readonly machine: MachineId
}

export function compareEpochs(a: Epoch, b: Epoch): number {
  if (a.counter !== b.counter) return a.counter - b.counter
  return a.machine < b.machine ? -1 : a.machine > b.machine ? 1 : 0
}

/** "orphaned": it has lost a neighbour, keeps what it holds and waits to hear where the others are. */
export type RankState = 'reserved' | 'starting' | 'loading' | 'ready' | 'orphaned' | 'stopping'

export interface Endpoint {
  readonly host: string
  readonly port: number
  /** In a world: where the rank before it reaches it for collectives. */
  readonly ring?: { readonly host: string; readonly port: number }
}

/** One rank on this machine, from the reservation of its memory to its end. */
export interface Holding {
  readonly plan: GroupPlan
  readonly planHash: string
  readonly rank: number
  readonly epoch: Epoch
  /** Which version of the wish it was started for. */
  readonly wish?: number
  readonly state: RankState
  /** Monotonic time of this machine; travels as an age. */
  readonly sinceMs: number
  readonly pid: number | null
  readonly endpoint: Endpoint | null
  readonly phase: string
  readonly fraction: number
  readonly tokens: number
  readonly contextTokens: number
  readonly activeBytes: number
  readonly tokensPerSecond: number
  /** How long its loading took. */
  readonly loadMs?: number
  /** Requests that it reads, writes or keeps waiting. */
  readonly queue?: number
  /** When a request of it last began or ended; monotonic time that travels as an age. */
  readonly usedMs?: number
}

export interface ModelFetch {
  readonly digest: ModelDigest
  readonly fraction: number
  readonly failure: string | null
}

/** A rank that ended without being asked to. */
export interface Failure {
  readonly deployment: DeploymentId
  /** The wish it served; a newer one starts with a clean slate. */
  readonly wish: number
  readonly group: GroupId
  readonly formation?: number
  readonly rank: number
  readonly cause: string
  /** It had answered, or was lost to a machine, link or operator: no reason to hold back. */
  readonly excused: boolean
  readonly atMs: number
}

export interface MachineRecord {
  readonly id: MachineId
  readonly name: string
  readonly role: Role
  readonly boot: string
  readonly incarnation: number
  readonly revision: number
  readonly version: string
  readonly platform: string
  /** On a CPU backend float32 is the fastest; everywhere else weights stay as stored. */
  readonly computesIn: 'float32' | 'stored'
  readonly memoryLendBytes: number
  /** Bytes per second between memory and processor, where the chip is known: what decoding is bound by. */
  readonly memoryBandwidth?: number
  readonly models: readonly ModelRef[]
  /** Copies of models under way to this machine, and what became of the last ones that failed. */
  readonly fetches?: readonly ModelFetch[]
  readonly holdings: readonly Holding[]
  readonly failures: readonly Failure[]
  readonly epochSeen: Epoch
  /** False while draining, on battery, or quarantined: no new rank here, with the reason. */
  readonly accepts: { readonly ok: boolean; readonly reason: string }
}

export function reservedBytes(holdings: readonly Holding[]): number {
  let bytes = 0
  for (const { plan, rank, state } of holdings) {
    if (planted.stoppingIsFree && state === 'stopping') continue
    bytes += plan.stages.flatMap((stage) => stage.ranks)[rank]?.memoryBytes ?? 0
  }
  return bytes
}
