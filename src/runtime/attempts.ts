// Attempts that run on ranks of this machine: questions in, tokens out to whoever asked, here or afar.
import { assertNever } from '../core/assert.ts'
import type { AttemptId, GroupId } from '../core/ids.ts'
import type { PromptRead } from '../core/plan/score/first-token.ts'
import type { GroupPause } from '../core/serving/gap.ts'
import type {
  FinishReason,
  GenerationError,
  Part,
  Question,
  Token,
  Usage,
} from '../core/serving/request.ts'
import type { FrameFromWorker, FrameToWorker, SubmitFrame } from '../wire/worker-frames.ts'

/** Who hears of an attempt. Exactly one of finished, refused, lost ends it. */
export interface AttemptSink {
  accepted(promptTokens: number, cachedTokens: number): void
  progressed(done: number, total: number): void
  /** Its group was put together again, and goes on. */
  paused(pause: GroupPause): void
  token(position: number, token: Token): void
  finished(reason: FinishReason, parts: readonly Part[], usage: Usage): void
  refused(error: GenerationError): void
  /** `crash` when the group went down and nothing from outside explains it. */
  lost(cause: string, crash?: { readonly alone: boolean }): void
}

export interface AttemptOrder {
  readonly attempt: AttemptId
  readonly group: GroupId
  readonly question: Question
  readonly replay: readonly number[]
  /** It may have brought a group down before: it waits for the others to end, and others for it. */
  readonly alone?: boolean
}

/** Something that can answer attempts: the ranks here, or another machine's. */
export interface AttemptHost {
  submit(order: AttemptOrder, sink: AttemptSink): void
  cancel(attempt: AttemptId): void
}

export type AttemptFrame = Extract<
  FrameFromWorker,
  { kind: 'accepted' | 'step' | 'progress' | 'paused' | 'finished' | 'failed' }
>

interface Running {
  readonly order: AttemptOrder
  readonly group: GroupId
  readonly sink: AttemptSink
  /** Handed to the rank; until then it waits for its turn. */
  sent: boolean
  /** What it reads before its first token, while it has the group to itself; else null. */
  reading: { readonly tokens: number; readonly sinceMs: number } | null
}

/** Hears how long a prompt took that a group read for one request alone. */
export type ReadListener = (group: GroupId, read: PromptRead) => void

/** Only readonly-ness differs between the core's question and the frame's fields. */
function submitFrameOf(order: AttemptOrder): SubmitFrame {
  const { attempt, question, replay } = order
  return { kind: 'submit', attempt, replay, ...question } as unknown as SubmitFrame
}

/** Where the head rank of a group listens; null when it is not ready here. */
export type HeadOf = (group: GroupId) => { send(frame: FrameToWorker): void } | null

export class LocalAttempts implements AttemptHost {
  readonly #headOf: HeadOf
  readonly #nowMs: () => number
  readonly #running = new Map<string, Running>()
  readonly #usedMs = new Map<GroupId, number>()
  #onRead: ReadListener = () => undefined

  constructor(headOf: HeadOf, nowMs: () => number) {
    this.#headOf = headOf
    this.#nowMs = nowMs
  }

  watchReads(listener: ReadListener): void {
    this.#onRead = listener
  }

  submit(order: AttemptOrder, sink: AttemptSink): void {
    const { group } = order
    if (this.#headOf(group) === null) {
      sink.lost(`group ${group} is not ready on this machine`)
      return
    }
    for (const other of this.#running.values()) if (other.group === group) other.reading = null
    this.#running.set(order.attempt, { order, group, sink, sent: false, reading: null })
    this.#usedMs.set(group, this.#nowMs())
    this.#admit(group)
  }

  /** In the order they came; one that must be alone waits for the others to end, and they for it. */
  #admit(group: GroupId): void {
    const head = this.#headOf(group)
    if (head === null) return
    const here = [...this.#running.values()].filter((running) => running.group === group)
    const sent = here.filter((running) => running.sent)
    let isTaken = sent.some((running) => running.order.alone === true)
    let count = sent.length
    for (const running of here) {
      if (running.sent) continue
      const { alone = false } = running.order
      if (isTaken || (alone && count > 0)) return
      running.sent = true
      isTaken = alone
      count += 1
      head.send(submitFrameOf(running.order))
    }
  }

  cancel(attempt: AttemptId): void {
    const running = this.#running.get(attempt)
    if (running === undefined) return
    this.#running.delete(attempt)
    this.#usedMs.set(running.group, this.#nowMs())
    if (running.sent) this.#headOf(running.group)?.send({ kind: 'cancel', attempt })
    this.#admit(running.group)
  }

  countOf(group: GroupId): number {
    let count = 0
    for (const running of this.#running.values()) if (running.group === group) count += 1
    return count
  }

  /** When an attempt on this group last began or ended. */
  lastUsedMs(group: GroupId): number | null {
    return this.#usedMs.get(group) ?? null
  }

  /** Every attempt on a group whose rank has gone. */
  loseGroup(group: GroupId, cause: string, crashed = false): void {
    this.#usedMs.delete(group)
    const lost = [...this.#running].filter(([, running]) => running.group === group)
    const alone = lost.filter(([, running]) => running.sent).length === 1
    for (const [attempt, { sink, sent }] of lost) {
      this.#running.delete(attempt)
      // Those that had not begun cannot have had a hand in it.
      if (crashed && sent) sink.lost(cause, { alone })
      else sink.lost(cause)
    }
  }

  /** Takes a frame about attempts; returns how many tokens it carried. */
  take(frame: AttemptFrame): number {
    switch (frame.kind) {
      case 'step':
        for (const { attempt, position, token, parts, logprob } of frame.rows) {
          const value = logprob === undefined ? { id: token, parts } : { id: token, parts, logprob }
          const running = this.#running.get(attempt)
          if (running === undefined) continue
          this.#haveRead(running)
          running.sink.token(position, value as Token)
        }
        return frame.rows.length
      case 'accepted':
        this.#read(frame)
        return 0
      case 'progress':
        if (frame.attempt !== null)
          this.#running.get(frame.attempt)?.sink.progressed(frame.done, frame.total)
        return 0
      case 'paused':
        for (const attempt of frame.attempts) this.#running.get(attempt)?.sink.paused(frame.pause)
        return 0
      case 'finished': {
        const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = frame
        const usage = { promptTokens, cachedTokens, completionTokens, reasoningTokens }
        this.#end(frame.attempt)?.finished(frame.reason, frame.parts, usage)
        return 0
      }
      case 'failed': {
        const { code, message } = frame
        if (frame.attempt !== null) this.#end(frame.attempt)?.refused({ code, message })
        return 0
      }
      default:
        return assertNever(frame)
    }
  }

  #read(frame: Extract<AttemptFrame, { kind: 'accepted' }>): void {
    const running = this.#running.get(frame.attempt)
    if (running === undefined) return
    const { promptTokens, cachedTokens } = frame
    if (this.countOf(running.group) === 1 && running.order.replay.length === 0)
      running.reading = { tokens: promptTokens - cachedTokens, sinceMs: this.#nowMs() }
    running.sink.accepted(promptTokens, cachedTokens)
  }

  #haveRead(running: Running): void {
    const { reading, group } = running
    if (reading === null) return
    running.reading = null
    const seconds = (this.#nowMs() - reading.sinceMs) / 1000
    this.#onRead(group, { tokens: reading.tokens, seconds })
  }

  #end(attempt: string): AttemptSink | undefined {
    const running = this.#running.get(attempt)
    this.#running.delete(attempt)
    if (running === undefined) return undefined
    this.#usedMs.set(running.group, this.#nowMs())
    this.#admit(running.group)
    return running.sink
  }
}
