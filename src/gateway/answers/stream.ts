// Streams an answer, whatever the protocol: holds the headers while a refusal may still deserve its own
// status, frees the slot when the reader hangs up, joins tokens for readers that have fallen behind.
import type { ServerResponse } from 'node:http'
import { limits } from '../../core/limits.ts'
import type { Token, Usage } from '../../core/serving/request.ts'
import { type ApiError, toApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import type { LiveAnswers } from './live.ts'
import { type AnswerOrder, AnswerRun, type Ending } from './run.ts'

export interface StreamRenderer {
  /** The prompt is read or being read; this may come before the first byte or after it. */
  accepted?(prompt: { promptTokens: number; cachedTokens: number }): void
  /** The first bytes after the headers. */
  begin(): void
  /** Usually one token; several when the reader has fallen behind. */
  tokens(index: number, tokens: readonly Token[]): void
  finish(index: number, ending: Ending): void
  /** The last bytes of an answer that came to its end. */
  complete(usage: Usage): void
  /** The stream has begun, so the error travels inside it. */
  fail(error: ApiError): void
}

export interface ResponseOrder extends AnswerOrder {
  /** What the client knows the answer by; it may be cancelled under this name. */
  readonly id: string
  readonly live: LiveAnswers
  readonly response: ServerResponse
}

/** Settles when the response is complete; rejects only while no byte has been sent. */
export function streamAnswer(
  order: ResponseOrder,
  stream: EventStream,
  renderer: StreamRenderer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const behind: Token[][] = order.asks.map(() => [])
    let ended = false
    const begin = (): void => {
      if (stream.isOpen || ended) return
      stream.open()
      renderer.begin()
    }
    const flush = (index: number): void => {
      const tokens = behind[index]
      if (tokens === undefined || tokens.length === 0 || ended) return
      behind[index] = []
      renderer.tokens(index, tokens)
    }
    const flushAll = (): void => {
      for (const index of behind.keys()) flush(index)
    }
    const end = (): void => {
      ended = true
      clearTimeout(hold)
      order.live.remove(order.id)
      stream.close()
      resolve()
    }
    const hold = setTimeout(begin, limits.headersHoldMs)
    const run = new AnswerRun(order, {
      accepted(_index, promptTokens, cachedTokens) {
        renderer.accepted?.({ promptTokens, cachedTokens })
        begin()
      },
      progressed: (done, total) => stream.progressed(done, total),
      token(index, token) {
        begin()
        behind[index]?.push(token)
        if (!stream.isCongested) flush(index)
      },
      finished(index, ending) {
        begin()
        flush(index)
        renderer.finish(index, ending)
      },
      completed(usage) {
        renderer.complete(usage)
        end()
      },
      failed(error) {
        if (stream.isOpen) {
          flushAll()
          renderer.fail(toApiError(error))
          end()
          return
        }
        ended = true
        clearTimeout(hold)
        order.live.remove(order.id)
        reject(toApiError(error))
      },
    })
    if (!ended) order.live.add(order.id, (error) => run.fail(error))
    stream.onDrain(flushAll)
    order.response.on('close', () => {
      if (order.response.writableFinished) return
      run.drop()
      if (!ended) end()
    })
  })
}
