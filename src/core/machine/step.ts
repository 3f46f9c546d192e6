// One turn of a machine: take an input in, decide, and say what must be done. The loop around it owns
// time, chance and the world; the simulator runs this very function.
import { decideAgent } from '../agent/decide.ts'
import {
  heldRanks,
  obeyCommit,
  obeyPrepare,
  obeyStop,
  stopHolding,
  obeyFetch,
} from '../agent/obey.ts'
import { assert, assertNever } from '../assert.ts'
import { applyEvent } from '../cluster/apply-event.ts'
import { type Decision, decision } from '../cluster/decision.ts'
import { roster } from '../cluster/desired.ts'
import { machinesOf } from '../cluster/group-plan.ts'
import type { ClusterMessage } from '../cluster/messages.ts'
import { type MachineState, type Moment, ownRecord } from '../cluster/state.ts'
import { takePrepared, takeRefusal } from '../coordinator/answers.ts'
import { decideCoordinator } from '../coordinator/decide.ts'
import type { Effect } from '../effects.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { judgePeers } from '../membership/liveness.ts'
import { catchUp, greet } from './gossip.ts'
import type { MachineInput } from './inputs.ts'
import { takeProgress, takeReport } from './rank-reports.ts'
import { withAges, withTimes } from './record-ages.ts'
import { planted } from '../planted.ts'

export interface StepOutcome {
  readonly state: MachineState
  readonly effects: readonly Effect[]
}

export function stepMachine(
  before: MachineState,
  input: MachineInput,
  moment: Moment,
): StepOutcome {
  const effects: Effect[] = []
  let state = take(before, receive(before, input, moment), { effects, moment })
  // Beats only feed the next tick's verdicts: deciding on each of a thousand a second buys nothing.
  if (input.kind !== 'heartbeat') {
    for (let round = 0; ; round++) {
      assert(round < limits.decideRoundsMax, 'decisions settle')
      const decided = decideCoordinator(state, moment)
      state = take(state, decided, { effects, moment })
      if (!decided.again) break
    }
    state = take(state, decideAgent(state, moment.nowMs), { effects, moment })
  }
  return { state, effects: withUpkeep(before, state, { effects, moment }) }
}

function take(
  state: MachineState,
  decided: Decision,
  { effects, moment }: { effects: Effect[]; moment: Moment },
): MachineState {
  effects.push(...decided.effects)
  return decided.events.reduce((next, event) => applyEvent(next, event, moment.nowMs), state)
}

/** What every step owes: durable things on disk before any message, and news to the peers. */
function withUpkeep(
  before: MachineState,
  after: MachineState,
  { effects, moment }: { effects: readonly Effect[]; moment: Moment },
): readonly Effect[] {
  if (
    before.registers === after.registers &&
    (before.epochSeen === after.epochSeen || planted.volatileEpoch) &&
    before.self.revision === after.self.revision
  )
    return effects
  const isRaised = before.epochSeen !== after.epochSeen && !planted.volatileEpoch
  const written = before.registers !== after.registers || isRaised
  const all: Effect[] = written ? [{ kind: 'journal-write' }, ...effects] : [...effects]
  const news: ClusterMessage[] = []
  if (before.registers !== after.registers) {
    const entries = [...after.registers].filter(
      ([key, register]) =>
        before.registers.get(key) !== register &&
        (register.value !== undefined || !planted.tombstoneUntold),
    )
    news.push({ kind: 'registers', entries })
  }
  if (before.self.revision !== after.self.revision) {
    news.push({ kind: 'record', record: withAges(ownRecord(after), moment.nowMs) })
  }
  for (const peer of after.peers.values()) {
    if (peer.status === 'dead') continue
    for (const message of news) all.push({ kind: 'message-send', to: peer.id, message })
  }
  return all
}

/** Only machines of the roster are listened to: one just removed may still have words on the way. */
function isTrusted(state: MachineState, from: MachineId): boolean {
  return planted.strangerHeard || from === state.self.id || roster(state.registers).has(from)
}

function receive(state: MachineState, input: MachineInput, moment: Moment): Decision {
  const out = decision()
  const { nowMs } = moment
  switch (input.kind) {
    case 'tick':
      return tick(state, input, nowMs)
    case 'woken':
      return wake(state, input.sleptMs, nowMs)
    case 'heartbeat':
      return isTrusted(state, input.from) ? greet(state, input, nowMs) : out
    case 'link-lost':
      out.events.push(input)
      return out
    case 'message':
      if (!isTrusted(state, input.from)) return out
      return receiveMessage(state, { from: input.from, message: input.message, nowMs })
    case 'rank-report':
      return takeReport(state, input, nowMs)
    case 'endpoints-reserved':
      return answerEndpoints(state, input)
    case 'registers-write':
      for (const write of input.writes) out.events.push({ kind: 'register-written', ...write })
      return out
    case 'registers-replace':
      out.events.push({ kind: 'registers-replaced', registers: input.registers })
      out.events.push({ kind: 'term-ended' })
      // What runs here served another cluster's wishes.
      for (const holding of state.holdings.values()) {
        if (holding.stop !== null) continue
        const cause = 'this machine joined or left a cluster'
        // A group of several machines cannot finish its answers without this one's trust.
        const drain = machinesOf(holding.plan).length === 1
        stopHolding(holding, { cause, asked: true, drain, ordered: false, nowMs, out })
      }
      return out
    case 'facts-learned':
    case 'advice-learned':
    case 'measurements-taken':
      out.events.push(input)
      return out
    case 'self-change':
      out.events.push({ kind: 'self-changed', change: input.change })
      return out
    default:
      return assertNever(input)
  }
}

/** While we slept others went on without us: what runs here belongs to the past. */
function wake(state: MachineState, sleptMs: number, nowMs: number): Decision {
  const out = decision()
  const cause = `this machine slept for ${Math.round(sleptMs / 1000)} s`
  for (const holding of state.holdings.values()) {
    if (holding.stop === null)
      stopHolding(holding, { cause, asked: true, drain: false, ordered: false, nowMs, out })
  }
  return out
}

function tick(
  state: MachineState,
  input: Extract<MachineInput, { kind: 'tick' }>,
  nowMs: number,
): Decision {
  const out = decision()
  let seen = state
  if (input.lagMs > limits.loopLagMsTolerated) {
    const lost = { kind: 'time-lost', ms: input.lagMs } as const
    out.events.push(lost)
    // Judged by what is left of their silence: a machine that always lags must still see deaths.
    seen = applyEvent(state, lost, nowMs)
  }
  out.events.push(...judgePeers(seen, nowMs))
  takeProgress(seen, input.progress, { nowMs, out })
  catchUp(state, nowMs, out)
  return out
}

function receiveMessage(
  state: MachineState,
  { from, message, nowMs }: { from: MachineId; message: ClusterMessage; nowMs: number },
): Decision {
  const out = decision()
  const reply = (answer: ClusterMessage): void => {
    out.effects.push({ kind: 'message-send', to: from, message: answer })
  }
  switch (message.kind) {
    case 'record':
      // Nobody speaks for another machine.
      if (message.record.id !== from) return out
      out.events.push({ kind: 'record-received', record: withTimes(message.record, nowMs) })
      return out
    case 'record-ask':
      reply({ kind: 'record', record: withAges(ownRecord(state), nowMs) })
      return out
    case 'registers':
      // Having caught up shows in equal digests; this may be one change out of many that we missed.
      out.events.push({ kind: 'registers-received', entries: message.entries })
      return out
    case 'registers-ask':
      reply({ kind: 'registers', entries: [...state.registers] })
      return out
    case 'group-prepare':
      return obeyPrepare(state, message, { from, nowMs })
    case 'group-commit':
      return obeyCommit(state, message)
    case 'group-stop':
      return obeyStop(state, message, nowMs)
    case 'model-fetch':
      return obeyFetch(state, message)
    case 'group-prepared':
      return takePrepared(state, { from, message })
    case 'group-refused':
      return takeRefusal(state, { from, message }, nowMs)
    default:
      return assertNever(message)
  }
}

function answerEndpoints(
  state: MachineState,
  input: Extract<MachineInput, { kind: 'endpoints-reserved' }>,
): Decision {
  const out = decision()
  const { plan, to, outcome } = input
  const { group, formation } = plan
  // Stopped while the ports were being found: nobody waits for the answer.
  if (heldRanks(state, group).length === 0) return out
  if (outcome.ok) {
    const { endpoints } = outcome
    const message = { kind: 'group-prepared', group, formation, endpoints } as const
    out.effects.push({ kind: 'message-send', to, message })
    for (const { rank, endpoint } of endpoints) {
      out.events.push({ kind: 'holding-changed', group, rank, change: { endpoint } })
    }
    return out
  }
  const { reason } = outcome
  const { epochSeen } = state
  const message = { kind: 'group-refused', group, formation, reason, epochSeen } as const
  out.effects.push({ kind: 'message-send', to, message })
  for (const { rank, state: rankState } of heldRanks(state, group))
    if (rankState === 'reserved') out.events.push({ kind: 'holding-removed', group, rank })
  return out
}
