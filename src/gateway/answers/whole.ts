// An answer sent in one piece. A client that waits for long hears from us before it gives up: headers, then
// a blank now and then, which JSON allows before its first brace.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { ServerResponse } from 'node:http'
import { limits } from '../../core/limits.ts'
import type { Token, Usage } from '../../core/serving/request.ts'
import { ApiError, toApiError } from '../api-error.ts'
import { Blocks } from './blocks.ts'
import { AnswerRun, type Ending } from './run.ts'
import type { ResponseOrder } from './stream.ts'

export interface WholeAnswer {
  readonly tokens: readonly Token[]
  readonly blocks: Blocks
  readonly ending: Ending
}

export interface WholeRenderer {
  render(answers: readonly WholeAnswer[], usage: Usage): object
  /** The error envelope of the protocol, for a failure after the headers have gone. */
  readonly fail: (error: ApiError) => object
}

/** Who wants to know when things happen. */
export interface AnswerWatcher {
  accepted(): void
  token(): void
}

const unwatched: AnswerWatcher = { accepted: () => undefined, token: () => undefined }

/** Rejects only while no byte has been sent. */
export function answerWhole(
  order: ResponseOrder,
  renderer: WholeRenderer,
  watcher: AnswerWatcher = unwatched,
): Promise<Response> {
  return answerPatiently(order.response, renderer.fail, async () => {
    const collected = await collect(order, watcher)
    return collected === null ? null : renderer.render(collected.answers, collected.usage)
  })
}

/** Sends what `work` comes to, however long it takes; null when nobody is there to read it. */
export async function answerPatiently(
  response: ServerResponse,
  fail: WholeRenderer['fail'],
  work: () => Promise<object | null>,
): Promise<Response> {
  const patience = new Patience(response)
  try {
    const body = await work()
    return body === null ? RESPONSE_ALREADY_SENT : patience.finish(body)
  } catch (error) {
    if (!patience.isCommitted) throw error
    const known =
      error instanceof ApiError
        ? error
        : toApiError({
            code: 'failed',
            message: 'Bushel failed to handle this request; its log says why',
          })
    patience.breakOff(fail(known))
    return RESPONSE_ALREADY_SENT
  } finally {
    patience.stop()
  }
}

interface Collected {
  readonly answers: readonly WholeAnswer[]
  readonly usage: Usage
}

/** Null when the reader hung up first. */
function collect(order: ResponseOrder, watcher: AnswerWatcher): Promise<Collected | null> {
  const { response, live, id } = order
  return new Promise<Collected | null>((resolve, reject) => {
    const tokens: Token[][] = order.asks.map(() => [])
    const answers: WholeAnswer[] = []
    let over = false
    const run = new AnswerRun(order, {
      accepted: () => watcher.accepted(),
      progressed: () => undefined,
      token(index, token) {
        watcher.token()
        tokens[index]?.push(token)
      },
      finished(index, ending) {
        const own = tokens[index] ?? []
        const blocks = new Blocks()
        for (const token of own) blocks.push(token.parts)
        blocks.push(ending.parts)
        answers[index] = { tokens: own, blocks, ending }
      },
      completed(usage) {
        over = true
        resolve({ answers, usage })
      },
      failed(error) {
        over = true
        reject(toApiError(error))
      },
    })
    if (over) return
    live.add(id, (error) => run.fail(error))
    response.on('close', () => {
      if (response.writableFinished) return
      run.drop()
      resolve(null)
    })
  }).finally(() => live.remove(id))
}

/** Keeps a waiting client's connection alive without promising anything before it must. */
class Patience {
  readonly #response: ServerResponse
  #timer: NodeJS.Timeout
  isCommitted = false

  constructor(response: ServerResponse) {
    this.#response = response
    this.#timer = setTimeout(() => this.#commit(), limits.wholeAnswerHoldMs)
  }

  #commit(): void {
    if (this.#response.destroyed || this.#response.headersSent) return
    this.isCommitted = true
    this.#response.writeHead(200, { 'content-type': 'application/json', 'x-accel-buffering': 'no' })
    this.#response.write('\n')
    this.#timer = setInterval(() => this.#response.write('\n'), limits.keepAliveEveryMs)
  }

  finish(body: object): Response {
    this.stop()
    if (!this.isCommitted) return Response.json(body)
    this.#response.end(JSON.stringify(body))
    return RESPONSE_ALREADY_SENT
  }

  /** The status can no longer be changed; a response without its end is at least never taken for an answer. */
  breakOff(body: object): void {
    this.stop()
    this.#response.write(JSON.stringify(body), () => this.#response.destroy())
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearInterval(this.#timer)
  }
}
