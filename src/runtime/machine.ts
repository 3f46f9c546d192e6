// The machine loop: inputs in, one pure step, effects out in order. It owns no decisions.
import { assertNever } from '../core/assert.ts'
import type { MachineState } from '../core/cluster/state.ts'
import type { Effect } from '../core/effects.ts'
import type { MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import { ownBeat } from '../core/machine/gossip.ts'
import type { MachineInput, RankProgress, RegisterWrite } from '../core/machine/inputs.ts'
import { stepMachine } from '../core/machine/step.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import type { Entropy } from '../ports/entropy.ts'
import type { Journal } from '../ports/journal.ts'
import type { PeerNetwork } from '../ports/peer-network.ts'

type RankEffect = Extract<
  Effect,
  { kind: 'rank-start' | 'rank-stop' | 'rank-drain' | 'endpoints-reserve' }
>

/** Whoever keeps the rank processes: the real supervisor, or the simulator's. */
export interface RankKeeper {
  perform(effect: RankEffect): void
  progress(): readonly RankProgress[]
}

export interface Notes {
  note(
    level: 'info' | 'warn' | 'error',
    text: string,
    about: Readonly<Record<string, unknown>>,
  ): void
}

export interface MachinePorts {
  readonly clock: Clock
  readonly entropy: Entropy
  readonly network: PeerNetwork
  readonly journal: Journal
  readonly ranks: RankKeeper
  readonly notes: Notes
}

/** How soon a failed journal write is tried again; everything behind it waits. */
const journalRetryMs = 1000

export class Machine {
  readonly #ports: MachinePorts
  #state: MachineState
  #queue: Effect[] = []
  #writing = false
  #timers: CancelTimer[] = []
  #listeners = new Set<(state: MachineState) => void>()
  #pendingWrites: { writes: readonly RegisterWrite[]; done: () => void }[] = []
  #durable: (() => void)[] = []
  #lastTickMs: number
  #lastWallMs: number
  #stopped = false

  constructor(initial: MachineState, ports: MachinePorts) {
    this.#ports = ports
    this.#state = initial
    this.#lastTickMs = ports.clock.nowMs()
    this.#lastWallMs = ports.clock.wallMs()
  }

  get state(): MachineState {
    return this.#state
  }

  start(): void {
    const { clock, network } = this.#ports
    this.#timers.push(
      clock.every(limits.tickEveryMs, () => this.#tick()),
      clock.every(limits.heartbeatEveryMs, () => network.beat(ownBeat(this.#state))),
    )
    network.beat(ownBeat(this.#state))
    this.#tick()
  }

  /** Ends the loop. Ranks are ended by their keeper; nothing is decided any more. */
  stop(): void {
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
    this.#timers = []
    this.#queue = []
  }

  /** Called after every step that changed the state. */
  subscribe(listener: (state: MachineState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  post(input: MachineInput): void {
    if (this.#stopped) return
    const { clock, entropy } = this.#ports
    const before = this.#state
    const moment = { nowMs: clock.nowMs(), entropy: entropy.hex(16) }
    const { state, effects } = stepMachine(before, input, moment)
    this.#state = state
    this.#queue.push(...effects)
    this.#pump()
    if (state === before) return
    for (const listener of this.#listeners) listener(state)
  }

  /** Changes desired state; calls back once the change would survive a crash. */
  write(writes: readonly RegisterWrite[], done: () => void): void {
    this.#pendingWrites.push({ writes, done })
    this.#flushWrites()
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
    const wallMs = clock.wallMs()
    const elapsedMs = nowMs - this.#lastTickMs
    const lagMs = Math.max(0, elapsedMs - limits.tickEveryMs)
    const sleptMs = Math.max(0, wallMs - this.#lastWallMs - elapsedMs)
    this.#lastTickMs = nowMs
    this.#lastWallMs = wallMs
    this.post({ kind: 'tick', lagMs, sleptMs, progress: ranks.progress() })
    this.#flushWrites()
  }

  #pump(): void {
    while (!this.#writing && !this.#stopped) {
      const effect = this.#queue.shift()
      if (effect === undefined) return
      if (effect.kind === 'journal-write') this.#save()
      else this.#perform(effect)
    }
  }

  #save(): void {
    this.#writing = true
    const { registers, epochSeen, self } = this.#state
    const waiting = this.#durable.splice(0)
    this.#ports.journal.save({ registers, epochSeen, incarnation: self.incarnation }, (error) => {
      if (error !== null) {
        const about = { reason: error.message }
        this.#ports.notes.note('error', 'the journal could not be written; trying again', about)
        this.#durable.unshift(...waiting)
        this.#ports.clock.after(journalRetryMs, () => this.#save())
        return
      }
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
      case 'rank-stop':
      case 'rank-drain':
      case 'endpoints-reserve':
        this.#ports.ranks.perform(effect)
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
