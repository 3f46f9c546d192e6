// A responses request as a question.
import type { Question } from '../../../core/serving/request.ts'
import { type QuestionSource, effortVariables } from '../../question-source.ts'
import { samplingFor } from '../../sampling.ts'
import { toGrammar } from '../response-format.ts'
import { samplingWishes } from '../sampling-fields.ts'
import { toMessages } from './input.ts'
import type { Item, ResponsesRequest } from './request.ts'
import type { ResponseTools } from './tools.ts'

export function responseQuestion(
  request: ResponsesRequest,
  from: QuestionSource & { items: readonly Item[]; tools: ResponseTools },
): Question {
  const { tools, toolChoice, parallelToolCalls } = from.tools
  const wantsLogprobs = request.include?.includes('message.output_text.logprobs') === true
  const logprobs = request.top_logprobs ?? (wantsLogprobs ? 0 : null)
  return {
    prompt: {
      kind: 'chat',
      messages: toMessages(from.items, request.instructions),
      tools,
      toolChoice,
      parallelToolCalls,
      variables: effortVariables(request.reasoning?.effort),
      nowMs: from.nowMs,
    },
    sampling: samplingFor(samplingWishes(request), {
      defaults: from.model.defaults,
      seed: from.seed,
    }),
    tokensMax: request.max_output_tokens ?? null,
    stop: [],
    ignoreEos: false,
    logprobs,
    grammar: toGrammar(request.text?.format, 'text.format'),
    cacheScope: from.cacheScope,
  }
}
