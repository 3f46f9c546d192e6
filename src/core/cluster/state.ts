// Everything one machine knows and decides on. The loop holds exactly one of these.
import type { GroupId, MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import type { GroupPlan } from './group-plan.ts'
import type { Endpoint, Epoch, Failure, Holding, MachineRecord, Role } from './record.ts'
import { type Registers, noRegisters, registersDigest } from './registers.ts'

export type PeerStatus = 'alive' | 'suspect' | 'dead'

export interface PeerState {
  readonly id: MachineId
  readonly record: MachineRecord | null
  /** When the record arrived: ages inside it count from here. */
  readonly recordAtMs: number
  readonly incarnation: number
  readonly boot: string
  readonly revisionOffered: number
  readonly digest: string
  readonly epoch: Epoch
  readonly hears: readonly MachineId[]
  /** When it was last asked for its record or sent our registers: differences are settled once a second. */
  readonly askedMs: number
  readonly syncedMs: number
  /** Last beat per link that is up. */
  readonly links: ReadonlyMap<string, number>
  readonly heardMs: number
  /** All links were reset at this time and none has come back. */
  readonly resetMs: number | null
  readonly status: PeerStatus
  readonly statusSinceMs: number
}

/** A holding of our own with what only we need: the agent's private notes. */
export interface OwnHolding extends Holding {
  readonly wish: number
  readonly committed: {
    readonly endpoints: readonly (Endpoint | null)[]
    readonly secret: string
  } | null
  /** The process was asked for; it has not answered yet. */
  readonly launchedMs: number | null
  readonly lastFrameMs: number
  readonly step: number
  readonly stepMs: number
  readonly busy: boolean
  /** When its figures were last made public. */
  readonly statsMs: number
  readonly stop: {
    readonly cause: string
    readonly sinceMs: number
    readonly draining: boolean
    readonly killed: boolean
    /** Ordered by a coordinator or a person, or made necessary by sleep: no failure of the rank. */
    readonly asked: boolean
  } | null
}

/** A group that this machine, as coordinator, is bringing up. */
export interface Start {
  readonly plan: GroupPlan
  readonly wish: number
  readonly sinceMs: number
  readonly committed: boolean
  readonly prepared: ReadonlyMap<
    MachineId,
    readonly { readonly rank: number; readonly endpoint: Endpoint | null }[]
  >
}

export interface SelfState {
  readonly id: MachineId
  readonly name: string
  readonly role: Role
  readonly boot: string
  readonly incarnation: number
  readonly revision: number
  readonly version: string
  readonly platform: string
  readonly computesIn: MachineRecord['computesIn']
  readonly memoryLendBytes: number
  readonly models: MachineRecord['models']
  readonly accepts: MachineRecord['accepts']
}

/** The two things the core is not allowed to find out by itself. */
export interface Moment {
  readonly nowMs: number
  /** 128 fresh random bits in hex. */
  readonly entropy: string
}

export interface MachineState {
  readonly self: SelfState
  readonly registers: Registers
  readonly registersDigest: string
  /** Highest epoch ever seen; on disk before anything is obeyed under it. */
  readonly epochSeen: Epoch
  readonly peers: ReadonlyMap<MachineId, PeerState>
  readonly holdings: ReadonlyMap<string, OwnHolding>
  readonly failures: readonly Failure[]
  /** The machines this one can coordinate with, and since when that set is unchanged. */
  readonly view: { readonly members: readonly MachineId[]; readonly sinceMs: number }
  readonly starts: ReadonlyMap<GroupId, Start>
  /** This machine's turn as coordinator: never resumed after a restart, so its group ids are never reused. */
  readonly term: { readonly epoch: Epoch; readonly startsBegun: number } | null
  /** Whether this machine may write desired state: not before it has heard what it missed. */
  readonly caughtUp: boolean
  readonly startedMs: number
}

export function holdingKey(group: GroupId, rank: number): string {
  return `${group}#${rank}`
}

export function initialState(
  self: SelfState,
  from: { registers?: Registers; epochSeen?: Epoch; nowMs: number },
): MachineState {
  return {
    self,
    registers: from.registers ?? noRegisters,
    registersDigest: registersDigest(from.registers ?? noRegisters),
    epochSeen: from.epochSeen ?? { counter: 0, machine: self.id },
    peers: new Map(),
    holdings: new Map(),
    failures: [],
    view: { members: [self.id], sinceMs: from.nowMs },
    starts: new Map(),
    term: null,
    caughtUp: false,
    startedMs: from.nowMs,
  }
}

/** The machine's own record as others should see it. */
export function ownRecord(state: MachineState): MachineRecord {
  const { id, name, role, boot, incarnation, revision, version, platform, computesIn } = state.self
  return {
    id,
    name,
    role,
    boot,
    incarnation,
    revision,
    version,
    platform,
    computesIn,
    memoryLendBytes: state.self.memoryLendBytes,
    models: state.self.models,
    holdings: [...state.holdings.values()].map(publicHolding),
    failures: state.failures,
    epochSeen: state.epochSeen,
    accepts: state.self.accepts,
  }
}

/** Fields that only this machine's agent cares about; a change in them alone is no news to others. */
export const privateHoldingFields: ReadonlySet<string> = new Set<keyof OwnHolding>([
  'wish',
  'committed',
  'launchedMs',
  'lastFrameMs',
  'step',
  'stepMs',
  'busy',
  'statsMs',
  'stop',
])

function publicHolding(own: OwnHolding): Holding {
  const { wish: _w, committed: _c, launchedMs: _l, lastFrameMs: _f, step: _s, ...rest } = own
  const { stepMs: _m, busy: _b, statsMs: _a, stop: _t, ...holding } = rest
  return holding
}

/** Records of this machine and of every peer that is not dead, newest known. */
export function liveRecords(state: MachineState): readonly MachineRecord[] {
  const records = [ownRecord(state)]
  for (const peer of state.peers.values()) {
    if (peer.status !== 'dead' && peer.record !== null) records.push(peer.record)
  }
  return records
}

/** Failures that still speak: within the window, everywhere we can see. */
export function recentFailures(state: MachineState, nowMs: number): readonly Failure[] {
  const recent: Failure[] = []
  const cutoff = nowMs - limits.restartWindowMs
  for (const failure of state.failures) if (failure.atMs >= cutoff) recent.push(failure)
  for (const peer of state.peers.values()) {
    if (peer.record === null) continue
    for (const failure of peer.record.failures) if (failure.atMs >= cutoff) recent.push(failure)
  }
  return recent
}
