// Everything one machine knows and decides on. The loop holds exactly one of these.
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { SmallMap } from '../small-map.ts'
import type { KnownAdvice } from './advice.ts'
import type { GroupPlan } from './group-plan.ts'
import type { Endpoint, Epoch, Failure, Holding, MachineRecord, Role } from './record.ts'
import { isDrained } from './desired.ts'
import { type KnownFacts, noFacts } from './known-facts.ts'
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
  readonly role: Role
  readonly hears: readonly MachineId[]
  readonly follows: MachineId | null
  /** When it was last asked for its record or sent our registers: differences are settled once a second. */
  readonly askedMs: number
  readonly syncedMs: number
  /** Last beat per link that is up. */
  readonly links: SmallMap<string, number>
  readonly heardMs: number
  /** All links were reset at this time and none has come back. */
  readonly resetMs: number | null
  readonly status: PeerStatus
  readonly statusSinceMs: number
}

/** What every rank of a starting group is told: where the others are, and the secret they share. */
export interface Commitment {
  readonly endpoints: readonly (Endpoint | null)[]
  readonly secret: string
}

/** A holding of our own with what only we need: the agent's private notes. */
export interface OwnHolding extends Holding {
  readonly wish: number
  readonly committed: Commitment | null
  /** The process was asked for; it has not answered yet. */
  readonly launchedMs: number | null
  readonly lastFrameMs: number
  readonly step: number
  readonly stepMs: number
  readonly busy: boolean
  /** The plan of the next formation, once this rank has been told to be ready for it. */
  readonly reformPlan: GroupPlan | null
  /** When its figures were last made public. */
  readonly statsMs: number
  readonly stop: {
    readonly cause: string
    readonly sinceMs: number
    readonly draining: boolean
    /** When KILL was last sent. */
    readonly killedMs: number | null
    /** Wanted by a coordinator or a person, or made necessary by sleep: no failure of the rank. */
    readonly asked: boolean
    /** By a coordinator's order, whose epoch must be on disk before the rank hears of it. */
    readonly ordered: boolean
  } | null
}

/** A group that this machine, as coordinator, is bringing up. */
export interface Start {
  readonly plan: GroupPlan
  readonly wish: number
  /** What its machines ran when it was planned: the same for all of them, however often they are asked. */
  readonly version: string
  readonly sinceMs: number
  /** When its orders were last sent: they are repeated until they are answered. */
  readonly orderedMs: number
  /** What was committed, to be said again to whoever missed it. */
  readonly committed: Commitment | null
  readonly prepared: ReadonlyMap<
    MachineId,
    readonly { readonly rank: number; readonly endpoint: Endpoint | null }[]
  >
}

export interface StopOrdered {
  readonly atMs: number
  /** Only reservations were to be given back. */
  readonly reservedOnly: boolean
}

export interface HeldOff {
  readonly untilMs: number
  /** Refusals in a row. */
  readonly refusals: number
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
  readonly memoryBandwidth?: MachineRecord['memoryBandwidth']
  readonly fetches?: MachineRecord['fetches']
  readonly models: MachineRecord['models']
  readonly accepts: MachineRecord['accepts']
}

/** The two things the core is not allowed to find out by itself. */
export interface Moment {
  readonly nowMs: number
  /** 128 fresh random bits in hex. */
  readonly entropy: string
}

/** The machines this one can coordinate with, who of them should, and since when that is so. */
export interface View {
  readonly members: readonly MachineId[]
  readonly coordinator: MachineId | null
  readonly sinceMs: number
  /** The revision it was made from. */
  readonly revision: number
}

export interface MachineState {
  readonly self: SelfState
  readonly registers: Registers
  readonly registersDigest: string
  /** Highest epoch ever seen; on disk before anything is obeyed under it. */
  readonly epochSeen: Epoch
  readonly peers: SmallMap<MachineId, PeerState>
  /** Counts changes, among the peers or of our own standing, that could matter to who coordinates;
   * another beat or another record is none. */
  readonly viewRevision: number
  readonly holdings: ReadonlyMap<string, OwnHolding>
  readonly failures: readonly Failure[]
  readonly view: View
  readonly starts: ReadonlyMap<GroupId, Start>
  /** When this machine, as coordinator, last ordered a group to stop. */
  readonly stops: ReadonlyMap<GroupId, StopOrdered>
  /** Deployments whose plan was refused, and until when they wait. */
  readonly heldOff: ReadonlyMap<DeploymentId, HeldOff>
  /** This machine's turn as coordinator: never resumed after a restart, so its group ids are never reused. */
  readonly term: { readonly epoch: Epoch; readonly startsBegun: number } | null
  /** Whether this machine may write desired state: not before it has heard what it missed. */
  readonly caughtUp: boolean
  readonly startedMs: number
  /** What the machines are made of, as far as this one has asked; nothing of it travels. */
  readonly facts: KnownFacts
  /** What the planner said when it was last asked about a deployment; nothing of it travels. */
  readonly advice: ReadonlyMap<DeploymentId, KnownAdvice>
  /** When this cluster was last probed, by the wall clock of whoever did; 0: never. */
  readonly measuredMs: number
  /** Whether there is a planner to ask. */
  readonly hasPlanner: boolean
}

export function holdingKey(group: GroupId, rank: number): string {
  return `${group}#${rank}`
}

export function initialState(
  self: SelfState,
  from: {
    registers?: Registers
    epochSeen?: Epoch
    nowMs: number
    hasPlanner?: boolean
    measuredMs?: number
  },
): MachineState {
  return {
    self,
    registers: from.registers ?? noRegisters,
    registersDigest: registersDigest(from.registers ?? noRegisters),
    epochSeen: from.epochSeen ?? { counter: 0, machine: self.id },
    peers: SmallMap.of(),
    viewRevision: 0,
    holdings: new Map(),
    failures: [],
    view: { members: [self.id], coordinator: null, sinceMs: from.nowMs, revision: -1 },
    starts: new Map(),
    stops: new Map(),
    heldOff: new Map(),
    term: null,
    caughtUp: false,
    startedMs: from.nowMs,
    facts: noFacts,
    advice: new Map(),
    measuredMs: from.measuredMs ?? 0,
    hasPlanner: from.hasPlanner ?? false,
  }
}

/** The machine's own record as others should see it. */
export function ownRecord(state: MachineState): MachineRecord {
  const { id, name, role, boot, incarnation, revision, version, platform, computesIn } = state.self
  const { memoryBandwidth, fetches } = state.self
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
    ...(memoryBandwidth === undefined ? {} : { memoryBandwidth }),
    models: state.self.models,
    ...(fetches === undefined ? {} : { fetches }),
    holdings: [...state.holdings.values()].map(publicHolding),
    failures: state.failures,
    epochSeen: state.epochSeen,
    accepts: acceptsNow(state),
  }
}

/** Whether new ranks may come here: what its owner says, unless a rank that will not die holds memory. */
export function acceptsNow(state: MachineState): MachineRecord['accepts'] {
  for (const { plan, phase } of state.holdings.values()) {
    if (phase !== undeadPhase) continue
    const reason = `a rank of group ${plan.group} does not end even when killed; restart this machine`
    return { ok: false, reason }
  }
  if (isDrained(state.registers, state.self.id)) return { ok: false, reason: drainedReason }
  return state.self.accepts
}

export const drainedReason = 'it is being drained'

/** Whether a deployment waits before it is started again. */
export function isHeldOff(state: MachineState, deployment: DeploymentId, nowMs: number): boolean {
  return (state.heldOff.get(deployment)?.untilMs ?? -Infinity) > nowMs
}

/** The phase of a rank that finishes its answers before it goes. */
export const drainingPhase = 'draining'
/** The phase of a rank that has outlived KILL. */
export const undeadPhase = 'does not end'

/** Fields that only this machine's agent cares about; a change in them alone is no news to others. */
export const privateHoldingFields: ReadonlySet<string> = new Set<keyof OwnHolding>([
  'committed',
  'reformPlan',
  'launchedMs',
  'lastFrameMs',
  'step',
  'stepMs',
  'busy',
  'statsMs',
  'stop',
])

function publicHolding(own: OwnHolding): Holding {
  const { reformPlan: _r, committed: _c, launchedMs: _l, lastFrameMs: _f, step: _s, ...rest } = own
  const { stepMs: _m, busy: _b, statsMs: _a, stop: _t, ...holding } = rest
  return holding
}

/** What a machine calls itself, as far as it has said so. */
export function machineName(state: MachineState, id: MachineId): string | undefined {
  return id === state.self.id ? state.self.name : state.peers.get(id)?.record?.name
}

/** Records of this machine and of every peer that is not dead, newest known. */
export function liveRecords(state: MachineState): readonly MachineRecord[] {
  const records = [ownRecord(state)]
  for (const peer of state.peers.values()) {
    if (peer.status !== 'dead' && peer.record !== null) records.push(peer.record)
  }
  return records
}

/** A failure with the machine it happened on. */
export interface SeenFailure extends Failure {
  readonly machine: MachineId
}

/** Failures that still speak: within the window, everywhere we can see. */
export function recentFailures(state: MachineState, nowMs: number): readonly SeenFailure[] {
  const recent: SeenFailure[] = []
  const cutoff = nowMs - limits.restartWindowMs
  const add = (machine: MachineId, failures: readonly Failure[]): void => {
    for (const failure of failures) if (failure.atMs >= cutoff) recent.push({ ...failure, machine })
  }
  add(state.self.id, state.failures)
  for (const peer of state.peers.values())
    if (peer.record !== null) add(peer.id, peer.record.failures)
  return recent
}
