// One answer as it grows: what arrived, when, and how it ended. Pure; times count from the asking.
import type { ChatEvent, TokenUsage } from '../api/chat-events.ts'
import type { Failure } from '../api/failure.ts'
import { assertNever } from '../assert-never.ts'

export const answerStatuses = ['waiting', 'streaming', 'done', 'stopped', 'failed'] as const
export type AnswerStatus = (typeof answerStatuses)[number]

export interface Answer {
  readonly model: string
  readonly status: AnswerStatus
  readonly text: string
  readonly reasoning: string
  /** The first piece of any kind, the first of the answer proper, and the end. */
  readonly firstTokenMs: number | null
  readonly firstTextMs: number | null
  readonly lastTokenMs: number | null
  readonly endedMs: number | null
  /** Pieces with text. A piece is one token, or several when this page fell behind. */
  readonly pieces: number
  readonly usage: TokenUsage | null
  readonly finishReason: string | null
  readonly failure: Failure | null
  /** The model was not ready when it was asked, so the time to the first token holds its loading. */
  readonly includesLoad: boolean
}

export function newAnswer(of: { model: string; includesLoad: boolean }): Answer {
  return {
    ...of,
    status: 'waiting',
    text: '',
    reasoning: '',
    firstTokenMs: null,
    firstTextMs: null,
    lastTokenMs: null,
    endedMs: null,
    pieces: 0,
    usage: null,
    finishReason: null,
    failure: null,
  }
}

export function isRunning({ status }: Answer): boolean {
  return status === 'waiting' || status === 'streaming'
}

export function advanceAnswer(answer: Answer, event: ChatEvent, elapsedMs: number): Answer {
  // Usage may follow the end; nothing else may.
  if (event.kind === 'usage-received') return { ...answer, usage: event.usage }
  if (!isRunning(answer)) return answer
  switch (event.kind) {
    case 'text-received':
      return {
        ...withPiece(answer, elapsedMs),
        text: answer.text + event.text,
        firstTextMs: answer.firstTextMs ?? elapsedMs,
      }
    case 'reasoning-received':
      return { ...withPiece(answer, elapsedMs), reasoning: answer.reasoning + event.text }
    case 'answer-finished':
      return { ...answer, status: 'done', finishReason: event.reason, endedMs: elapsedMs }
    case 'answer-failed':
      return { ...answer, status: 'failed', failure: event.failure, endedMs: elapsedMs }
    default:
      return assertNever(event)
  }
}

export function stopAnswer(answer: Answer, elapsedMs: number): Answer {
  return isRunning(answer) ? { ...answer, status: 'stopped', endedMs: elapsedMs } : answer
}

function withPiece(answer: Answer, elapsedMs: number): Answer {
  return {
    ...answer,
    status: 'streaming',
    pieces: answer.pieces + 1,
    firstTokenMs: answer.firstTokenMs ?? elapsedMs,
    lastTokenMs: elapsedMs,
  }
}
