// One simulated machine: its clocks, its disk, its power, and the lives its daemon leads one after another.
import { roster } from '../core/cluster/desired.ts'
import type { Register } from '../core/cluster/registers.ts'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { MachineId } from '../core/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { SimDisk } from './disk.ts'
import type { Life } from './life.ts'
import { admissionsOf } from './roster.ts'
import type { MachineSpec } from './scenario.ts'
import type { Schedule } from './schedule.ts'

interface Timer {
  dueMs: number
  /** How much the machine had slept when the timer was set: sleep since then postpones it. */
  sleptMs: number
  /** It belongs to a rank: it runs on while the daemon is paused. */
  readonly isOfRank: boolean
  readonly isWanted: () => boolean
  readonly run: () => void
}

/** TCP gives up on a peer that sleeps longer than this. */
const patienceMs = 20_000
const pipeMs = 0.1

export class SimHost {
  readonly spec: MachineSpec
  readonly disk = new SimDisk()
  readonly #schedule: Schedule
  life: Life | null = null
  lives = 0
  version = '1.0.0'
  isPaused = false
  isAsleep = false
  wallOffsetMs: number
  /** Memory that dead ranks have not given back. */
  memoryHeldBytes = 0
  /** Models whose files are there but not whole. */
  readonly brokenFiles = new Set<string>()
  isPortTaken = false
  /** Ranks started while this holds load ten times slower. */
  isSlowToLoad = false
  /** When it last came back from standing still: it has yet to read what waited for it. */
  resumedMs = -Infinity
  #sleptMs = 0
  #asleepSinceMs = 0
  #postponed: Timer[] = []
  #inbox: { readonly isMail: boolean; readonly run: () => void }[] = []

  constructor(spec: MachineSpec, schedule: Schedule) {
    this.spec = spec
    this.#schedule = schedule
    this.wallOffsetMs = spec.wallSkewMs
  }

  get isUp(): boolean {
    return this.life !== null
  }

  get isRunning(): boolean {
    return this.life !== null && !this.isPaused && !this.isAsleep
  }

  /** On its disk: what it came with, and what was copied to it. */
  readonly copied: ModelRef[] = []

  get models(): readonly ModelRef[] {
    return [...this.spec.models, ...this.copied]
  }

  /** How long it has slept so far, the sleep it is in included. */
  get sleptMs(): number {
    return this.#sleptMs + (this.isAsleep ? this.#schedule.nowMs - this.#asleepSinceMs : 0)
  }

  get monotonicMs(): number {
    return this.#schedule.nowMs - this.sleptMs + this.spec.monotonicOffsetMs
  }

  get wallMs(): number {
    return 1_800_000_000_000 + this.#schedule.nowMs + this.wallOffsetMs
  }

  trusts(id: MachineId): boolean {
    return this.life !== null && roster(this.life.machine.state.registers).has(id)
  }

  /** What it shows a machine that it shuts out: the cluster's word on it, and its own farewell. */
  evidenceFor(id: MachineId): readonly (readonly [string, Register])[] {
    const { farewell } = this.disk
    const own = this.life === null ? [] : admissionsOf(this.life.machine.state.registers, id)
    return farewell?.members.has(id) === true ? [...own, ...farewell.entries] : own
  }

  clockOf(life: Life): Clock {
    const set = (ms: number, run: () => void): (() => void) => {
      let isWanted = true
      this.#setTimer(ms, { isOfRank: false, isWanted: () => isWanted && life.isAlive, run })
      return () => (isWanted = false)
    }
    return {
      nowMs: () => this.monotonicMs,
      wallMs: () => this.wallMs,
      sleptMs: () => this.sleptMs,
      after: set,
      every: (ms, run) => {
        let cancel: () => void = () => undefined
        let isWanted = true
        const again = (): void => {
          if (!isWanted) return
          run()
          if (isWanted) cancel = set(ms, again)
        }
        cancel = set(ms, again)
        return () => {
          isWanted = false
          cancel()
        }
      },
    }
  }

  /** A timer of a rank: it stands still while the machine sleeps, and only then. */
  afterAwake(ms: number, run: () => void): void {
    this.#setTimer(ms, { isOfRank: true, isWanted: () => true, run })
  }

  /** Something arrives for the daemon: at once, or when it can read again. */
  receive(life: Life, run: () => void): void {
    this.#take(life, true, run)
  }

  /** The pipe from a rank. */
  hearRank(life: Life, run: () => void): void {
    this.#schedule.after(pipeMs, () => this.#take(life, false, run))
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.resumedMs = this.#schedule.nowMs
    const timers = this.#postponed.splice(0)
    for (const timer of timers) if (timer.isWanted()) timer.run()
    this.#readInbox()
  }

  sleep(): void {
    this.isAsleep = true
    this.#asleepSinceMs = this.#schedule.nowMs
  }

  /** Returns whether it slept so long that its connections are gone. */
  wake(): boolean {
    if (!this.isAsleep) return false
    const { nowMs } = this.#schedule
    const sleptMs = nowMs - this.#asleepSinceMs
    this.isAsleep = false
    this.resumedMs = nowMs
    this.#sleptMs += sleptMs
    for (const timer of this.#postponed.splice(0)) this.#postpone(timer, sleptMs)
    const isLong = sleptMs > patienceMs
    if (isLong) this.#inbox = this.#inbox.filter((entry) => !entry.isMail)
    this.#schedule.after(2, () => {
      if (this.isRunning) this.#readInbox()
    })
    return isLong
  }

  /** The daemon's life is over; nothing that waited for it matters any more. */
  bury(): void {
    this.life = null
    this.isPaused = false
    this.#postponed = this.#postponed.filter((timer) => timer.isWanted())
    this.#inbox = []
  }

  #take(life: Life, isMail: boolean, run: () => void): void {
    if (this.life !== life || !life.isAlive) return
    if (this.isRunning && this.#inbox.length === 0) run()
    else this.#inbox.push({ isMail, run: () => life.isAlive && run() })
  }

  #readInbox(): void {
    while (this.isRunning) {
      const entry = this.#inbox.shift()
      if (entry === undefined) return
      entry.run()
    }
  }

  #setTimer(ms: number, timer: Pick<Timer, 'isOfRank' | 'isWanted' | 'run'>): void {
    const dueMs = this.#schedule.nowMs + ms
    this.#arm({ ...timer, dueMs, sleptMs: this.sleptMs })
  }

  #arm(timer: Timer): void {
    this.#schedule.at(timer.dueMs, () => this.#fire(timer))
  }

  #fire(timer: Timer): void {
    if (!timer.isWanted()) return
    const postponedMs = this.#sleptMs - timer.sleptMs
    if (this.isAsleep || (this.isPaused && !timer.isOfRank)) this.#postponed.push(timer)
    else if (postponedMs > 0) this.#postpone(timer, postponedMs)
    else timer.run()
  }

  #postpone(timer: Timer, ms: number): void {
    timer.dueMs += ms
    timer.sleptMs = this.#sleptMs
    this.#arm(timer)
  }
}
