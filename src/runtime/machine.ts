// The machine loop: inputs in, one pure step, effects out in order. It owns no decisions.
import { assertNever } from '../core/assert.ts'
import type { AdviceQuestion } from '../core/cluster/advice.ts'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { MachineState, Moment } from '../core/cluster/state.ts'
import type { Effect } from '../core/effects.ts'
import type { MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import { ownBeat } from '../core/machine/gossip.ts'
import type { MachineInput, RankProgress, RegisterWrite } from '../core/machine/inputs.ts'
import { stepMachine } from '../core/machine/step.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import type { Entropy } from '../ports/entropy.ts'
import type { Journal, JournalSnapshot } from '../ports/journal.ts'
import type { PeerNetwork } from '../ports/peer-network.ts'

type RankEffect = Extract<
  Effect,
  { kind: 'rank-start' | 'rank-relink' | 'rank-stop' | 'rank-drain' | 'endpoints-reserve' }
>

/** Whoever keeps the rank processes: the real supervisor, or the simulator's. */
export interface RankKeeper {
  perform(effect: RankEffect): void
  progress(): readonly RankProgress[]
}

/** Copies models from other machines, and tells the loop how far it is. */
export interface ModelFetcher {
  fetch(model: ModelRef, from: MachineId): void
}

/** Asks all machines what they are made of, and posts what it hears. */
export interface FactsCollector {
  collect(): void
}

/** Asks the planner, and posts what it says. */
export interface Advisor {
  ask(question: AdviceQuestion): void
}

export interface Notes {
  note(
    level: 'info' | 'warn' | 'error',
    text: string,
    about: Readonly<Record<string, unknown>>,
  ): void
}

/** One turn of the loop, for whoever looks over its shoulder. */
export interface StepSeen {
  readonly input: MachineInput
  readonly before: MachineState
  readonly after: MachineState
  readonly effects: readonly Effect[]
}

export interface MachinePorts {
  readonly clock: Clock
  readonly entropy: Entropy
  readonly network: PeerNetwork
  readonly journal: Journal
  readonly ranks: RankKeeper
  /** Absent where every machine has every model. */
  readonly models?: ModelFetcher
  /** Absent where no machine could be more than it says in its record. */
  readonly facts?: FactsCollector
  /** There exactly where the state says that there is a planner. */
  readonly advisor?: Advisor
  readonly notes: Notes
  readonly watch?: (step: StepSeen) => void
}

/** How soon a failed journal write is tried again; everything behind it waits. */
const journalRetryMs = 1000

export class Machine {
  readonly #ports: MachinePorts
  #state: MachineState
  #inbox: MachineInput[] = []
  #stepping = false
  #queue: { readonly effect: Effect; readonly sinceMs: number }[] = []
  #writing = false
  #saved: Pick<JournalSnapshot, 'registers' | 'epochSeen'> | null = null
  #timers: CancelTimer[] = []
  #listeners = new Set<(state: MachineState) => void>()
  #pendingWrites: { writes: readonly RegisterWrite[]; done: () => void }[] = []
  #durable: (() => void)[] = []
  #lastTickMs: number
  #sleptMs: number
  #stopped = false

  constructor(initial: MachineState, ports: MachinePorts) {
    this.#ports = ports
    this.#state = initial
    this.#lastTickMs = ports.clock.nowMs()
    this.#sleptMs = ports.clock.sleptMs()
  }

  get state(): MachineState {
    return this.#state
  }

  start(): void {
    const { clock } = this.#ports
    this.#timers.push(
      clock.every(limits.tickEveryMs, () => this.#tick()),
      clock.every(limits.heartbeatEveryMs, () => this.#beat()),
    )
    this.#beat()
    this.#tick()
  }

  /** Ends the loop. Ranks are ended by their keeper; nothing is decided any more. */
  stop(): void {
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
    this.#timers = []
    this.#queue = []
    this.#inbox = []
  }

  /** Called after every step that changed something besides when a peer was last heard. */
  subscribe(listener: (state: MachineState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Takes an input. What it causes may post again; that waits its turn. */
  post(input: MachineInput): void {
    if (this.#stopped) return
    this.#inbox.push(input)
    if (this.#stepping) return
    this.#stepping = true
    try {
      this.#noticeSleep()
      for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift())
        this.#step(next)
    } finally {
      this.#stepping = false
    }
  }

  /** Changes desired state; calls back once the change would survive a crash. */
  write(writes: readonly RegisterWrite[], done: () => void): void {
    this.#pendingWrites.push({ writes, done })
    this.#flushWrites()
  }

  #step(input: MachineInput): void {
    const { clock, entropy, watch } = this.#ports
    const before = this.#state
    const moment = new LiveMoment(clock.nowMs(), entropy)
    const { state, effects } = stepMachine(before, input, moment)
    this.#state = state
    watch?.({ input, before, after: state, effects })
    for (const effect of effects) this.#enqueue(effect)
    this.#pump()
    if (state === before || (input.kind === 'heartbeat' && isOnlyHeard(before, state))) return
    for (const listener of this.#listeners) listener(state)
  }

  /** Sleep is noticed before anything else is done with a state that belongs to yesterday. */
  #noticeSleep(): void {
    const sleptMs = this.#ports.clock.sleptMs()
    const gapMs = sleptMs - this.#sleptMs
    this.#sleptMs = sleptMs
    if (gapMs > limits.sleepGapMs) this.#inbox.unshift({ kind: 'woken', sleptMs: gapMs })
  }

  #flushWrites(): void {
    // A machine that missed something first hears it, then writes above it.
    if (!this.#state.caughtUp) return
    for (const { writes, done } of this.#pendingWrites.splice(0)) {
      this.#durable.push(done)
      this.post({ kind: 'registers-write', writes })
    }
  }

  #tick(): void {
    const { clock, ranks } = this.#ports
    const nowMs = clock.nowMs()
    const lagMs = Math.max(0, nowMs - this.#lastTickMs - limits.tickEveryMs)
    this.#lastTickMs = nowMs
    this.post({ kind: 'tick', lagMs, progress: ranks.progress() })
    this.#flushWrites()
  }

  #beat(): void {
    const { clock, network } = this.#ports
    // Nothing that was true before a sleep is told to anyone after it.
    if (clock.sleptMs() - this.#sleptMs > limits.sleepGapMs) this.#tick()
    network.beat(ownBeat(this.#state))
  }

  #enqueue(effect: Effect): void {
    if (this.#writing && needsNoJournal(effect)) {
      this.#perform(effect)
      return
    }
    this.#queue.push({ effect, sinceMs: this.#ports.clock.nowMs() })
    if (this.#queue.length <= limits.effectsWaitingMax) return
    // The disk has been failing for long. Messages are best effort and are said again; memory is not.
    const oldest = this.#queue.findIndex(({ effect: waiting }) => waiting.kind === 'message-send')
    if (oldest !== -1) this.#queue.splice(oldest, 1)
  }

  #pump(): void {
    while (!this.#writing && !this.#stopped) {
      const next = this.#queue.shift()
      if (next === undefined) return
      const { effect, sinceMs } = next
      const waitedMs = this.#ports.clock.nowMs() - sinceMs
      if (effect.kind === 'journal-write') this.#save()
      else if (effect.kind !== 'message-send' || waitedMs <= limits.messageWaitMsMax)
        this.#perform(effect)
    }
  }

  #save(): void {
    const { registers, epochSeen, self } = this.#state
    const waiting = this.#durable.splice(0)
    if (this.#saved?.registers === registers && this.#saved.epochSeen === epochSeen) {
      // An earlier write already carried what this one was for.
      this.#writing = false
      for (const done of waiting) done()
      this.#pump()
      return
    }
    this.#writing = true
    this.#ports.journal.save({ registers, epochSeen, incarnation: self.incarnation }, (error) => {
      if (error !== null) {
        const about = { reason: error.message }
        this.#ports.notes.note('error', 'the journal could not be written; trying again', about)
        this.#durable.unshift(...waiting)
        this.#ports.clock.after(journalRetryMs, () => this.#save())
        return
      }
      this.#saved = { registers, epochSeen }
      this.#writing = false
      for (const done of waiting) done()
      this.#pump()
    })
  }

  #perform(effect: Exclude<Effect, { kind: 'journal-write' }>): void {
    switch (effect.kind) {
      case 'message-send':
        this.#send(effect.to, effect.message)
        return
      case 'note':
        this.#ports.notes.note(effect.level, effect.text, effect.about)
        return
      case 'rank-start':
      case 'rank-relink':
      case 'rank-stop':
      case 'rank-drain':
      case 'endpoints-reserve':
        this.#ports.ranks.perform(effect)
        return
      case 'model-fetch':
        this.#ports.models?.fetch(effect.model, effect.from)
        return
      case 'facts-collect':
        this.#ports.facts?.collect()
        return
      case 'advice-ask':
        this.#ports.advisor?.ask(effect.question)
        return
      default:
        assertNever(effect)
    }
  }

  #send(to: MachineId, message: Extract<Effect, { kind: 'message-send' }>['message']): void {
    if (to !== this.#state.self.id) this.#ports.network.sendCluster(to, message)
    // A cluster of one takes the same road: its messages come back to its own inbox.
    else this.#ports.clock.after(0, () => this.post({ kind: 'message', from: to, message }))
  }
}

/** Randomness is drawn when it is used: of a thousand inputs one needs any. */
class LiveMoment implements Moment {
  readonly nowMs: number
  readonly #entropy: Entropy

  constructor(nowMs: number, entropy: Entropy) {
    this.nowMs = nowMs
    this.#entropy = entropy
  }

  get entropy(): string {
    return this.#entropy.hex(16)
  }
}

/** A beat that brought nothing but the time it came at. */
function isOnlyHeard(before: MachineState, after: MachineState): boolean {
  return (
    before.viewRevision === after.viewRevision &&
    before.registers === after.registers &&
    before.caughtUp === after.caughtUp
  )
}

/**
 * What may be done while the disk does not answer: saying what is, asking, and ending a rank that hangs.
 * None of it promises anything that a crash could forget.
 */
function needsNoJournal(effect: Effect): effect is Exclude<Effect, { kind: 'journal-write' }> {
  switch (effect.kind) {
    case 'note':
      return true
    case 'rank-stop':
      return !effect.ordered
    case 'message-send':
      return plainTalk.has(effect.message.kind)
    case 'journal-write':
    case 'rank-start':
    case 'rank-relink':
    case 'rank-drain':
    case 'endpoints-reserve':
    case 'model-fetch':
      return false
    case 'facts-collect':
    case 'advice-ask':
      return true
    default:
      return assertNever(effect)
  }
}

const plainTalk: ReadonlySet<string> = new Set([
  'record',
  'record-ask',
  'registers-ask',
  'group-refused',
])
