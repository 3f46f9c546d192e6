// Runs one generation for one HTTP response, whatever the protocol: holds the headers while a refusal
// may still deserve its own status, frees the slot when the reader hangs up, joins tokens for slow ones.
import type { ServerResponse } from 'node:http'
import { limits } from '../core/limits.ts'
import type {
  FinishReason,
  GenerationError,
  Part,
  Question,
  Token,
  Usage,
} from '../core/serving/request.ts'
import type { Serving } from '../runtime/serving.ts'
import { type ApiError, toApiError } from './api-error.ts'
import type { EventStream } from './event-stream.ts'

export interface AnswerRenderer {
  /** The first bytes after the headers. */
  begin(): void
  /** Usually one token; several when the reader has fallen behind. */
  tokens(tokens: readonly Token[]): void
  finish(reason: FinishReason, parts: readonly Part[], usage: Usage): void
  /** The stream has begun, so the error travels inside it. */
  fail(error: ApiError): void
}

export interface AnswerOrder {
  readonly serving: Serving
  readonly name: string
  readonly question: Question
  readonly response: ServerResponse
}

/** Settles when the response is complete; rejects only while no byte has been sent. */
export function streamAnswer(
  order: AnswerOrder,
  stream: EventStream,
  renderer: AnswerRenderer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { response, serving, name, question } = order
    let behind: Token[] = []
    let ended = false
    const begin = (): void => {
      if (stream.isOpen || ended) return
      stream.open()
      renderer.begin()
    }
    const flush = (): void => {
      if (behind.length === 0 || ended) return
      const tokens = behind
      behind = []
      renderer.tokens(tokens)
    }
    const end = (): void => {
      ended = true
      clearTimeout(hold)
      stream.close()
      resolve()
    }
    const hold = setTimeout(begin, limits.headersHoldMs)
    const { cancel } = serving.generate(
      { name, question },
      {
        accepted: begin,
        progressed: () => undefined,
        token(token) {
          begin()
          behind.push(token)
          if (!stream.isCongested) flush()
        },
        finished(reason, parts, usage) {
          begin()
          flush()
          renderer.finish(reason, parts, usage)
          end()
        },
        failed(error) {
          clearTimeout(hold)
          if (!stream.isOpen) {
            ended = true
            reject(toApiError(error))
            return
          }
          flush()
          renderer.fail(toApiError(error))
          end()
        },
      },
    )
    stream.onDrain(flush)
    response.on('close', () => {
      if (!response.writableFinished) cancel()
      if (!ended) end()
    })
  })
}

export interface WholeAnswer {
  readonly tokens: readonly Token[]
  readonly parts: readonly Part[]
  readonly reason: FinishReason
  readonly usage: Usage
}

/** Collects the answer; null when the reader hung up first. */
export function collectAnswer(order: AnswerOrder): Promise<WholeAnswer | null> {
  return new Promise((resolve, reject) => {
    const { response, serving, name, question } = order
    const tokens: Token[] = []
    const { cancel } = serving.generate(
      { name, question },
      {
        accepted: () => undefined,
        progressed: () => undefined,
        token: (token) => void tokens.push(token),
        finished: (reason, parts, usage) => resolve({ tokens, parts, reason, usage }),
        failed: (error: GenerationError) => reject(toApiError(error)),
      },
    )
    response.on('close', () => {
      if (response.writableFinished) return
      cancel()
      resolve(null)
    })
  })
}

/** Text of one kind, over the tokens and what was held back at the end. */
export function joinText(answer: WholeAnswer, type: 'content' | 'reasoning'): string {
  let text = ''
  for (const part of allParts(answer)) if (part.type === type) text += part.text
  return text
}

export function* allParts(answer: WholeAnswer): Generator<Part> {
  for (const token of answer.tokens) yield* token.parts
  yield* answer.parts
}
