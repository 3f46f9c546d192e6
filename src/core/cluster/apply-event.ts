// The one reducer: state and event in, state out. No decisions are taken here.
import { assertNever } from '../assert.ts'
import {
  excuseSilence,
  forgetPeer,
  hearBeat,
  judgePeer,
  loseLink,
  noteContact,
  takeRecord,
} from './apply-peer-event.ts'
import type { ClusterEvent } from './events.ts'
import { limits } from '../limits.ts'
import { compareEpochs } from './record.ts'
import { type Registers, mergeRegisters, registersDigest, writeRegister } from './registers.ts'
import type { DeploymentId } from '../ids.ts'
import {
  type HeldOff,
  type MachineState,
  type OwnHolding,
  holdingKey,
  privateHoldingFields,
} from './state.ts'

/** Older failures are dropped: they no longer hold anything back, and a record must stay small. */
const failuresKept = 32
/** Orders to stop are remembered while they may have to be repeated. */
const stopsKeptMs = 60_000

export function applyEvent(state: MachineState, event: ClusterEvent, nowMs: number): MachineState {
  switch (event.kind) {
    case 'heartbeat-heard':
      return hearBeat(state, event, nowMs)
    case 'link-lost':
      return loseLink(state, event, nowMs)
    case 'record-received':
      return takeRecord(state, event.record, nowMs)
    case 'peer-judged':
      return judgePeer(state, event, nowMs)
    case 'peer-contacted':
      return noteContact(state, event, nowMs)
    case 'peer-forgotten':
      return forgetPeer(state, event.peer)
    case 'time-lost':
      return excuseSilence(state, event.ms, nowMs)
    case 'registers-received':
    case 'register-written':
    case 'registers-replaced':
    case 'caught-up':
      return applyDesiredEvent(state, event, nowMs)
    case 'facts-asked':
      return { ...state, facts: { ...state.facts, askedMs: nowMs } }
    case 'facts-learned':
      return { ...state, facts: { ...event.facts, askedMs: state.facts.askedMs, learnedMs: nowMs } }
    case 'advice-asked':
    case 'advice-learned':
      return { ...state, advice: adviceWith(state.advice, event, nowMs) }
    case 'measurements-taken':
      return { ...state, measuredMs: Math.max(state.measuredMs, event.atMs) }
    case 'self-changed':
      return rethought(revised({ ...state, self: { ...state.self, ...event.change } }))
    case 'epoch-seen':
      return compareEpochs(event.epoch, state.epochSeen) > 0
        ? rethought({ ...state, epochSeen: event.epoch })
        : state
    case 'holding-changed': {
      const isNews = Object.keys(event.change).some((field) => !privateHoldingFields.has(field))
      const changed = applyHoldingEvent(state, event, nowMs)
      return isNews && changed !== state ? revised(changed) : changed
    }
    case 'holding-added':
    case 'holding-removed':
    case 'rank-ended': {
      const changed = applyHoldingEvent(state, event, nowMs)
      return changed === state ? state : revised(changed)
    }
    case 'view-taken':
    case 'term-begun':
    case 'term-ended':
    case 'stop-ordered':
    case 'deployment-held-off':
      return applyCoordinationEvent(state, event, nowMs)
    case 'start-begun':
    case 'start-prepared':
    case 'start-committed':
    case 'start-ordered':
    case 'start-ended':
      return applyStartEvent(state, event, nowMs)
    default:
      return assertNever(event)
  }
}

function adviceWith(
  known: MachineState['advice'],
  event: Extract<ClusterEvent, { kind: 'advice-asked' | 'advice-learned' }>,
  nowMs: number,
): MachineState['advice'] {
  const { deployment, basis } = event
  const asked = known.get(deployment)
  if (event.kind === 'advice-asked') {
    // Things that keep changing make new questions, not a longer wait.
    const waits = asked?.advice === null && nowMs - asked.askedMs < 2 * limits.adviceWaitMsMax
    const askedMs = waits ? asked.askedMs : nowMs
    return new Map(known).set(deployment, { basis, askedMs, advice: null })
  }
  // Meanwhile something else was asked: this answers a question that nobody has any more.
  if (asked?.basis !== basis) return known
  return new Map(known).set(deployment, { ...asked, advice: event.advice })
}

type DesiredEvent = Extract<
  ClusterEvent,
  { kind: 'registers-received' | 'register-written' | 'registers-replaced' | 'caught-up' }
>

function applyDesiredEvent(state: MachineState, event: DesiredEvent, nowMs: number): MachineState {
  switch (event.kind) {
    case 'registers-received':
      return withRegisters(state, mergeRegisters(state.registers, event.entries).registers)
    case 'register-written': {
      const by = { machine: state.self.id, boot: state.self.boot }
      return withRegisters(state, writeRegister(state.registers, { ...event, by }))
    }
    case 'registers-replaced':
      // A newcomer first hears what runs already, as after a start: else it would serve it once more.
      return withRegisters({ ...state, caughtUp: false, startedMs: nowMs }, event.registers)
    case 'caught-up':
      return state.caughtUp ? state : { ...state, caughtUp: true }
    default:
      return assertNever(event)
  }
}

function withRegisters(state: MachineState, registers: Registers): MachineState {
  if (registers === state.registers) return state
  return { ...state, registers, registersDigest: registersDigest(registers) }
}

/** What others see has changed; the revision tells them. */
function revised(state: MachineState): MachineState {
  return { ...state, self: { ...state.self, revision: state.self.revision + 1 } }
}

/** Our own standing among the machines has changed: who coordinates is asked again. */
function rethought(state: MachineState): MachineState {
  return { ...state, viewRevision: state.viewRevision + 1 }
}

type HoldingEvent = Extract<
  ClusterEvent,
  { kind: 'holding-added' | 'holding-changed' | 'holding-removed' | 'rank-ended' }
>

function applyHoldingEvent(state: MachineState, event: HoldingEvent, nowMs: number): MachineState {
  if (event.kind === 'holding-added') {
    const { holding } = event
    const key = holdingKey(holding.plan.group, holding.rank)
    return { ...state, holdings: new Map(state.holdings).set(key, holding) }
  }
  const key = holdingKey(event.group, event.rank)
  const holding = state.holdings.get(key)
  if (holding === undefined) return state
  const holdings = new Map(state.holdings)
  if (event.kind === 'holding-changed') {
    const changed: OwnHolding = { ...holding, ...event.change }
    const sinceMs = changed.state === holding.state ? changed.sinceMs : nowMs
    holdings.set(key, { ...changed, sinceMs })
    return { ...state, holdings }
  }
  holdings.delete(key)
  if (event.kind === 'holding-removed' || event.asked) return { ...state, holdings }
  const failure = {
    deployment: holding.plan.deployment,
    wish: holding.wish,
    group: event.group,
    formation: holding.plan.formation,
    rank: event.rank,
    cause: event.cause,
    excused: event.excused,
    atMs: nowMs,
  }
  return { ...state, holdings, failures: [...state.failures, failure].slice(-failuresKept) }
}

type CoordinationEvent = Extract<
  ClusterEvent,
  { kind: 'view-taken' | 'term-begun' | 'term-ended' | 'stop-ordered' | 'deployment-held-off' }
>

function applyCoordinationEvent(
  state: MachineState,
  event: CoordinationEvent,
  nowMs: number,
): MachineState {
  switch (event.kind) {
    case 'view-taken': {
      const { members, coordinator } = event
      const same = coordinator === state.view.coordinator
      const sinceMs = same ? state.view.sinceMs : nowMs
      const revision = state.viewRevision
      return { ...state, view: { members, coordinator, sinceMs, revision } }
    }
    case 'term-begun':
      return rethought({
        ...state,
        epochSeen: event.epoch,
        term: { epoch: event.epoch, startsBegun: 0 },
      })
    case 'term-ended':
      return { ...state, term: null, starts: new Map(), stops: new Map(), heldOff: new Map() }
    case 'stop-ordered': {
      const { group, reservedOnly } = event
      const stops = new Map([...state.stops].filter(([, { atMs }]) => nowMs - atMs < stopsKeptMs))
      return { ...state, stops: stops.set(group, { atMs: nowMs, reservedOnly }) }
    }
    case 'deployment-held-off': {
      const { deployment, untilMs, refusals } = event
      const speaks = ({ untilMs: endMs }: HeldOff): boolean => nowMs - endMs < limits.refusedInRowMs
      const heldOff = new Map([...state.heldOff].filter(([, held]) => speaks(held)))
      return { ...state, heldOff: heldOff.set(deployment, { untilMs, refusals }) }
    }
    default:
      return assertNever(event)
  }
}

type StartEvent = Extract<
  ClusterEvent,
  { kind: 'start-begun' | 'start-prepared' | 'start-committed' | 'start-ordered' | 'start-ended' }
>

function applyStartEvent(state: MachineState, event: StartEvent, nowMs: number): MachineState {
  const starts = new Map(state.starts)
  if (event.kind === 'start-begun') {
    const { plan, wish, version } = event
    const sinceMs = nowMs
    const orderedMs = nowMs
    starts.set(plan.group, {
      plan,
      wish,
      version,
      sinceMs,
      orderedMs,
      committed: null,
      prepared: new Map(),
    })
    const term = state.term && { ...state.term, startsBegun: state.term.startsBegun + 1 }
    return { ...state, starts, term }
  }
  const start = starts.get(event.group)
  if (start === undefined) return state
  switch (event.kind) {
    case 'start-ended':
      starts.delete(event.group)
      break
    case 'start-ordered':
      starts.set(event.group, { ...start, orderedMs: nowMs })
      break
    case 'start-committed': {
      const committed = event.commitment
      starts.set(event.group, { ...start, committed, sinceMs: nowMs, orderedMs: nowMs })
      return { ...state, starts, heldOff: withoutRefusals(state.heldOff, start.plan.deployment) }
    }
    case 'start-prepared': {
      const prepared = new Map(start.prepared).set(event.machine, event.endpoints)
      starts.set(event.group, { ...start, prepared })
      break
    }
    default:
      return assertNever(event)
  }
  return { ...state, starts }
}

/** Everybody agreed: the next refusal is the first again. */
function withoutRefusals(
  heldOff: MachineState['heldOff'],
  deployment: DeploymentId,
): MachineState['heldOff'] {
  const held = heldOff.get(deployment)
  return held === undefined ? heldOff : new Map(heldOff).set(deployment, { ...held, refusals: 0 })
}
