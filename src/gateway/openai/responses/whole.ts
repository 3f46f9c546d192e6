// A response in one piece.
import type { Usage } from '../../../core/serving/request.ts'
import type { WholeAnswer } from '../../answers/whole.ts'
import { logprobEntries } from '../logprobs.ts'
import { type OutputOptions, itemsOf } from './output.ts'
import {
  type ResponseHead,
  type ResponseObject,
  responseObject,
  statusFor,
} from './response-object.ts'

export interface WholeOptions extends OutputOptions {
  readonly head: ResponseHead
  readonly keep: (response: ResponseObject) => void
}

export function wholeResponse(options: WholeOptions): {
  render(answers: readonly WholeAnswer[], usage: Usage): ResponseObject
} {
  return {
    render([answer], usage) {
      const status = statusFor(answer?.ending.reason ?? 'stop')
      const output =
        answer === undefined
          ? []
          : itemsOf(answer.blocks.list, {
              ...options,
              ended: status,
              logprobs: logprobEntries(answer.tokens),
            })
      const response = responseObject(options.head, { status, output, usage })
      options.keep(response)
      return response
    },
  }
}
