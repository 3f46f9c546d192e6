// Attempts that run on ranks of this machine: questions in, tokens out to whoever asked, here or afar.
import { assertNever } from '../core/assert.ts'
import type { AttemptId, GroupId } from '../core/ids.ts'
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
  token(position: number, token: Token): void
  finished(reason: FinishReason, parts: readonly Part[], usage: Usage): void
  refused(error: GenerationError): void
  lost(cause: string): void
}

export interface AttemptOrder {
  readonly attempt: AttemptId
  readonly group: GroupId
  readonly question: Question
  readonly replay: readonly number[]
}

/** Something that can answer attempts: the ranks here, or another machine's. */
export interface AttemptHost {
  submit(order: AttemptOrder, sink: AttemptSink): void
  cancel(attempt: AttemptId): void
}

export type AttemptFrame = Extract<
  FrameFromWorker,
  { kind: 'accepted' | 'step' | 'progress' | 'finished' | 'failed' }
>

interface Running {
  readonly group: GroupId
  readonly sink: AttemptSink
}

/** Only readonly-ness differs between the core's question and the frame's fields. */
function submitFrameOf(order: Omit<AttemptOrder, 'group'>): SubmitFrame {
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

  constructor(headOf: HeadOf, nowMs: () => number) {
    this.#headOf = headOf
    this.#nowMs = nowMs
  }

  submit({ attempt, group, question, replay }: AttemptOrder, sink: AttemptSink): void {
    const head = this.#headOf(group)
    if (head === null) {
      sink.lost(`group ${group} is not ready on this machine`)
      return
    }
    this.#running.set(attempt, { group, sink })
    this.#usedMs.set(group, this.#nowMs())
    head.send(submitFrameOf({ attempt, question, replay }))
  }

  cancel(attempt: AttemptId): void {
    const running = this.#running.get(attempt)
    if (running === undefined) return
    this.#running.delete(attempt)
    this.#usedMs.set(running.group, this.#nowMs())
    this.#headOf(running.group)?.send({ kind: 'cancel', attempt })
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
  loseGroup(group: GroupId, cause: string): void {
    this.#usedMs.delete(group)
    for (const [attempt, running] of this.#running) {
      if (running.group !== group) continue
      this.#running.delete(attempt)
      running.sink.lost(cause)
    }
  }

  /** Takes a frame about attempts; returns how many tokens it carried. */
  take(frame: AttemptFrame): number {
    switch (frame.kind) {
      case 'step':
        for (const { attempt, position, token, parts, logprob } of frame.rows) {
          const value = logprob === undefined ? { id: token, parts } : { id: token, parts, logprob }
          this.#running.get(attempt)?.sink.token(position, value as Token)
        }
        return frame.rows.length
      case 'accepted':
        this.#running.get(frame.attempt)?.sink.accepted(frame.promptTokens, frame.cachedTokens)
        return 0
      case 'progress':
        if (frame.attempt !== null)
          this.#running.get(frame.attempt)?.sink.progressed(frame.done, frame.total)
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

  #end(attempt: string): AttemptSink | undefined {
    const running = this.#running.get(attempt)
    this.#running.delete(attempt)
    if (running !== undefined) this.#usedMs.set(running.group, this.#nowMs())
    return running?.sink
  }
}
