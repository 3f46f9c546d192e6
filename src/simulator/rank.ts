// One simulated rank: it loads, finds the other ranks of its group, answers, and fails in every way that
// a real one does. It speaks the same frames as the Python worker.
import type { RankEvents, RankProcess } from '../ports/rank-launcher.ts'
import type {
  FrameFromWorker,
  FrameToWorker,
  LoadFrame,
  StepRow,
  SubmitFrame,
} from '../wire/worker-frames.ts'
import { type Answer, answerTo, refusalCode, tokenAt } from './answers.ts'
import type { SimHost } from './host.ts'
import type { Life } from './life.ts'
import type { Random } from './random.ts'

/** What the world around a rank does for it. */
export interface RankWorld {
  readonly random: Random
  readonly nowMs: () => number
  /** A timer that stands still while the machine sleeps, and only then. */
  readonly after: (host: SimHost, ms: number, run: () => void) => void
  /** The other ranks of its group that it can talk to now: null while any is missing or out of reach. */
  readonly othersOf: (rank: SimRank) => readonly SimRank[] | null
  readonly onReady: (rank: SimRank) => void
  readonly onTask: (rank: SimRank) => void
  readonly onExit: (rank: SimRank) => void
  readonly onSignal: (rank: SimRank, signal: 'TERM' | 'KILL') => void
  readonly onWrongReplay: (rank: SimRank, attempt: string) => void
}

interface Row {
  readonly attempt: string
  readonly answer: Answer
  next: number
  prefillSteps: number
}

/** "waiting": it has lost a neighbour and holds on to what it has. */
export type RankPhase = 'loading' | 'connecting' | 'ready' | 'waiting' | 'dead'

const loadStepMs = 500
const connectMsMax = 20_000
/** How fast a worker notices that its supervisor is gone. */
const orphanMsMax = 1500

export class SimRank implements RankProcess {
  readonly pid: number
  readonly host: SimHost
  readonly life: Life
  readonly load: LoadFrame
  readonly loadMs: number
  readonly #world: RankWorld
  readonly #events: RankEvents
  readonly #rows = new Map<string, Row>()
  readonly #stepMs: number
  /** What it was told to do, in the order it heard it. */
  tasks: string[] = []
  phase: RankPhase = 'loading'
  /** Changes when its group is put together anew around it. */
  bond: { readonly plan: string; readonly secret: string }
  /** Burns a core and gets nowhere. */
  isSpinning = false
  /** The files it read were whole. */
  loadedWhole = true
  ignoresTerm = false
  isUnkillable = false
  #step = 0
  #isStepping = false
  #blockedSinceMs: number | null = null

  constructor(
    parts: { pid: number; host: SimHost; life: Life; load: LoadFrame; loadMs: number },
    events: RankEvents,
    world: RankWorld,
  ) {
    this.pid = parts.pid
    this.host = parts.host
    this.life = parts.life
    this.load = parts.load
    this.bond = { plan: parts.load.plan, secret: parts.load.secret }
    this.loadMs = parts.loadMs
    this.#events = events
    this.#world = world
    this.#stepMs = world.random.between(60, 250)
  }

  get isAlive(): boolean {
    return this.phase !== 'dead'
  }

  get isHead(): boolean {
    return this.load.stage.index === 0 && this.load.world.rank === 0
  }

  get isBusy(): boolean {
    return this.#rows.size > 0
  }

  /** Attempts it works on, under the names it knows them by. */
  get attempts(): IterableIterator<string> {
    return this.#rows.keys()
  }

  /** Begins to load; afterwards everything comes as frames. */
  begin(failure: string | null): void {
    const steps = Math.max(1, Math.ceil(this.loadMs / loadStepMs))
    const tick = (done: number): void => {
      if (!this.isAlive) return
      if (this.isSpinning) return this.#again(loadStepMs, () => tick(done))
      this.#say({ kind: 'progress', phase: 'load', attempt: null, done, total: steps })
      if (failure !== null && done * 2 >= steps) return this.fail('load-failed', failure)
      if (done < steps) this.#again(loadStepMs, () => tick(done + 1))
      else {
        this.phase = 'connecting'
        this.#connect(this.#world.nowMs())
      }
    }
    this.#again(this.#world.random.between(50, 400), () => tick(0))
  }

  #connect(sinceMs: number): void {
    if (!this.isAlive || this.phase !== 'connecting') return
    const others = this.isSpinning ? null : this.#world.othersOf(this)
    const isThere = (other: SimRank): boolean =>
      other.phase !== 'loading' && other.bond.plan === this.bond.plan
    if (others?.every(isThere) === true) {
      this.#again(this.#world.random.between(20, 200), () => this.#becomeReady())
      return
    }
    if (this.#world.nowMs() - sinceMs > connectMsMax) {
      this.fail('peer-lost', 'another rank of the group did not come')
      return
    }
    this.#again(200, () => this.#connect(sinceMs))
  }

  #becomeReady(): void {
    if (!this.isAlive || this.isSpinning) return
    this.phase = 'ready'
    this.#world.onReady(this)
    const { limits } = this.load
    this.#say({
      kind: 'ready',
      pid: this.pid,
      device: 'simulated',
      versions: {},
      contextTokens: limits.contextTokensMax,
      vocabulary: 50_000,
      rowsMax: limits.rowsMax,
      weightsBytes: Math.floor(limits.memoryBytesMax / 2),
      kvBytesPerToken: 1000,
      batching: 'merged',
      loadMs: this.loadMs,
      canaryMs: 10,
      abilities: { chat: true, tools: true, reasoning: false },
    })
  }

  send(frame: FrameToWorker): void {
    if (!this.isAlive) return
    if (frame.kind === 'submit') this.#submit(frame)
    else if (frame.kind === 'cancel') this.#cancel(frame.attempt)
    else if (frame.kind === 'relayed') this.#follow(String(frame.body['task']))
    else if (frame.kind === 'relink') this.#relink(frame)
    else if (frame.kind === 'close') this.exit('the rank ended with exit code 0')
  }

  /** The head decides the order of work; the others hear it through their agents. */
  #lead(task: string): void {
    this.#follow(task)
    const to = Array.from({ length: this.load.stage.count - 1 }, (_, index) => index + 1)
    if (to.length > 0) this.#say({ kind: 'relay', to, body: { task } })
  }

  #follow(task: string): void {
    this.tasks.push(task)
    this.#world.onTask(this)
  }

  signal(signal: 'TERM' | 'KILL'): void {
    if (!this.isAlive) return
    this.#world.onSignal(this, signal)
    if (signal === 'TERM' && (this.ignoresTerm || this.isSpinning)) return
    if (this.isUnkillable) return
    const ms = signal === 'TERM' ? this.#world.random.between(10, 300) : 2
    this.#again(ms, () => {
      if (this.isAlive && !this.isUnkillable) this.exit(`the rank ended with signal SIG${signal}`)
    })
  }

  /** Its supervisor's pipe has closed. */
  orphan(): void {
    this.#again(this.#world.random.between(10, orphanMsMax), () => {
      if (this.isAlive) this.exit('its supervisor is gone')
    })
  }

  fail(code: string, message: string): void {
    if (!this.isAlive) return
    this.#say({ kind: 'failed', attempt: null, code, message })
    this.exit(`the rank ended with exit code 1: ${message}`)
  }

  exit(cause: string): void {
    if (!this.isAlive) return
    this.phase = 'dead'
    this.#rows.clear()
    this.#world.onExit(this)
    this.host.hearRank(this.life, () => this.#events.exit(cause))
  }

  #submit(frame: SubmitFrame): void {
    const { attempt } = frame
    const answer = answerTo(frame.prompt)
    if (answer.isRefused) {
      const message = 'the prompt is longer than the context'
      this.#say({ kind: 'failed', attempt, code: refusalCode, message })
      return
    }
    const isTrue = frame.replay.every((token, position) => token === tokenAt(answer, position))
    if (!isTrue) this.#world.onWrongReplay(this, attempt)
    const row: Row = {
      attempt,
      answer,
      next: frame.replay.length,
      prefillSteps: this.#world.random.whole(1, 4),
    }
    this.#rows.set(attempt, row)
    this.#lead(`submit ${attempt}`)
    this.#say({ kind: 'accepted', attempt: row.attempt, promptTokens: 7, cachedTokens: 0 })
    this.#work()
  }

  #cancel(attempt: string): void {
    const row = this.#rows.get(attempt)
    if (row === undefined) return
    this.#rows.delete(attempt)
    this.#lead(`cancel ${attempt}`)
    this.#finish(row, 'cancelled')
  }

  #work(): void {
    if (this.#isStepping || this.#rows.size === 0) return
    this.#isStepping = true
    this.#say({ kind: 'pulse', step: this.#step, busy: true })
    this.#again(this.#stepMs, () => this.#takeStep())
  }

  #takeStep(): void {
    if (!this.isAlive) return
    if (this.isSpinning || this.phase !== 'ready' || this.#isBlocked()) {
      if (this.isAlive) this.#again(200, () => this.#takeStep())
      return
    }
    this.#step += 1
    const shown: StepRow[] = []
    const done: Row[] = []
    for (const row of this.#rows.values()) this.#advance(row, shown, done)
    if (shown.length > 0) this.#say({ kind: 'step', step: this.#step, rows: shown })
    for (const row of done) {
      this.#rows.delete(row.attempt)
      this.#finish(row, 'length')
    }
    if (this.#rows.size > 0) this.#again(this.#stepMs, () => this.#takeStep())
    else {
      this.#isStepping = false
      this.#say({ kind: 'pulse', step: this.#step, busy: false })
    }
  }

  #advance(row: Row, shown: StepRow[], done: Row[]): void {
    if (row.next >= row.answer.length) {
      done.push(row)
      return
    }
    if (row.prefillSteps > 0) {
      row.prefillSteps -= 1
      this.#say({ kind: 'progress', phase: 'prefill', attempt: row.attempt, done: 1, total: 1 })
      return
    }
    const position = row.next
    row.next += 1
    // The text says which attempt of which group spoke: a checker compares it with who should have.
    const text = `${row.attempt}|${this.load.group}`
    const token = tokenAt(row.answer, position)
    shown.push({ attempt: row.attempt, position, token, parts: [{ type: 'content', text }] })
    if (row.next >= row.answer.length) done.push(row)
  }

  /** A step needs every rank of the group; waiting for one that is gone has a deadline. */
  #isBlocked(): boolean {
    const others = this.#world.othersOf(this)
    const nowMs = this.#world.nowMs()
    const isWith = (other: SimRank): boolean =>
      !other.isSpinning && other.tasks.length >= this.tasks.length
    if (others?.every(isWith) === true) {
      this.#blockedSinceMs = null
      return false
    }
    this.#blockedSinceMs ??= nowMs
    if (nowMs - this.#blockedSinceMs > this.load.limits.peerTimeoutMsMax) this.#losePeer()
    return true
  }

  #losePeer(): void {
    if (this.phase !== 'ready') return
    this.phase = 'waiting'
    const reason = 'it no longer answers'
    this.#say({ kind: 'peer-lost', rank: this.isHead ? 1 : 0, reason })
    const { bond } = this
    this.#again(this.load.limits.relinkWaitMsMax ?? 60_000, () => {
      if (this.bond === bond) this.fail('peer-lost', 'nobody took the place of a lost rank')
    })
  }

  /** Keeps its rows and goes on when the others of the new formation are there. */
  #relink(frame: Extract<FrameToWorker, { kind: 'relink' }>): void {
    if (this.phase !== 'ready' && this.phase !== 'waiting') return
    this.bond = { plan: frame.plan, secret: frame.secret }
    this.phase = 'connecting'
    this.tasks = []
    this.#blockedSinceMs = null
    this.#reconnect(frame.formation, this.#world.nowMs())
  }

  #reconnect(formation: number, sinceMs: number): void {
    if (this.phase !== 'connecting') return
    const others = this.isSpinning ? null : this.#world.othersOf(this)
    const isThere = (other: SimRank): boolean =>
      other.phase !== 'loading' && other.bond.plan === this.bond.plan
    if (others?.every(isThere) === true) {
      this.phase = 'ready'
      this.#say({ kind: 'relinked', formation, tokensReplayed: 0, rowsAnew: 0 })
    } else if (this.#world.nowMs() - sinceMs > connectMsMax)
      this.fail('peer-lost', 'another rank of the group did not come')
    else this.#again(200, () => this.#reconnect(formation, sinceMs))
  }

  #finish(row: Row, reason: 'length' | 'cancelled'): void {
    this.#say({
      kind: 'finished',
      attempt: row.attempt,
      reason,
      parts: [],
      promptTokens: 7,
      cachedTokens: 0,
      completionTokens: row.next,
      reasoningTokens: 0,
    })
  }

  #say(frame: FrameFromWorker): void {
    this.host.hearRank(this.life, () => this.#events.frame(frame))
  }

  #again(ms: number, run: () => void): void {
    this.#world.after(this.host, ms, run)
  }
}
