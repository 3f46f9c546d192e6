// A response nobody waits for: it is kept from the start and asked for later.
import type { Token, Usage } from '../../../core/serving/request.ts'
import { Blocks } from '../../answers/blocks.ts'
import { AnswerRun, type Ending } from '../../answers/run.ts'
import type { ResponseOrder } from '../../answers/stream.ts'
import { toApiError } from '../../api-error.ts'
import { type ResponseObject, responseObject } from './response-object.ts'
import { type WholeOptions, wholeResponse } from './whole.ts'

/** Starts it and returns what the client gets at once. */
export function runInBackground(options: WholeOptions & { order: ResponseOrder }): ResponseObject {
  const { order, head, keep } = options
  const tokens: Token[] = []
  let ending: Ending | null = null
  let over = false
  const queued = responseObject(head, { status: 'queued', output: [] })
  keep(queued)
  const end = (): void => {
    over = true
    order.live.remove(order.id)
  }
  const run = new AnswerRun(order, {
    accepted: () => keep(responseObject(head, { status: 'in_progress', output: [] })),
    progressed: () => undefined,
    token: (_index, token) => void tokens.push(token),
    finished: (_index, finished) => (ending = finished),
    completed(usage: Usage) {
      end()
      if (ending === null) return
      const blocks = new Blocks()
      for (const token of tokens) blocks.push(token.parts)
      blocks.push(ending.parts)
      wholeResponse(options).render([{ tokens, blocks, ending }], usage)
    },
    failed(error) {
      end()
      const status = error.code === 'cancelled' ? 'cancelled' : 'failed'
      keep(responseObject(head, { status, output: [], error: toApiError(error) }))
    },
  })
  if (!over) order.live.add(order.id, (error) => run.fail(error))
  return queued
}
