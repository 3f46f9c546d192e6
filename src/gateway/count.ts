// How many tokens a prompt has, by the model's own tokenizer and template. A worker that knows the purpose
// counts and does no more; an older one accepts an answer, which says the same, and is told to leave it.
import type { ServerResponse } from 'node:http'
import type { Question } from '../core/serving/request.ts'
import { toApiError } from './api-error.ts'
import type { GatewayServing } from './context.ts'

/** Null when the reader hung up first. */
export function countTokens(order: {
  serving: GatewayServing
  name: string
  question: Question
  response: ServerResponse
}): Promise<number | null> {
  const { serving, name, response } = order
  const question: Question = { ...order.question, purpose: 'count', tokensMax: 1 }
  return new Promise((resolve, reject) => {
    let counted = false
    let stop: (() => void) | null = null
    const { cancel } = serving.generate(
      { name, question },
      {
        accepted(promptTokens) {
          counted = true
          stop?.()
          resolve(promptTokens)
        },
        progressed: () => undefined,
        token: () => undefined,
        finished: (_reason, _parts, usage) => resolve(usage.promptTokens),
        failed: (error) => reject(toApiError(error)),
      },
    )
    // It may have been accepted before there was anything to cancel.
    stop = cancel
    if (counted) cancel()
    response.on('close', () => {
      cancel()
      resolve(null)
    })
  })
}
