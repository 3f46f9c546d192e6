// A messages request as a question.
import type { JsonValue } from '../../core/json.ts'
import type { ChatMessage, Grammar, Prompt, Question } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { checkSchema } from '../check-schema.ts'
import { type QuestionSource, effortVariables } from '../question-source.ts'
import { samplingFor } from '../sampling.ts'
import { toMessages } from './messages.ts'
import type { CountRequest, MessagesRequest } from './request.ts'
import { anthropicTools } from './tools.ts'

export function anthropicQuestion(request: MessagesRequest, from: QuestionSource): Question {
  return {
    prompt: promptOf(request, from.nowMs, request.output_config?.effort),
    sampling: samplingFor(
      { temperature: request.temperature, topP: request.top_p, topK: request.top_k },
      { defaults: from.model.defaults, seed: from.seed },
    ),
    tokensMax: request.max_tokens,
    stop: (request.stop_sequences ?? []).filter((text) => text !== ''),
    ignoreEos: false,
    logprobs: null,
    grammar: grammarOf(request),
    cacheScope: from.cacheScope,
  }
}

export function countQuestion(request: CountRequest, from: QuestionSource): Question {
  return {
    prompt: promptOf(request, from.nowMs),
    sampling: samplingFor({}, { defaults: from.model.defaults, seed: from.seed }),
    tokensMax: 1,
    stop: [],
    ignoreEos: false,
    logprobs: null,
    grammar: null,
    cacheScope: from.cacheScope,
  }
}

function promptOf(request: CountRequest, nowMs: number, effort?: string | null): Prompt {
  const messages = toMessages(request)
  return {
    kind: 'chat',
    messages,
    ...anthropicTools(request),
    variables: { ...effortVariables(effort), ...thinkingVariables(request), ...prefill(messages) },
    nowMs,
  }
}

function thinkingVariables({ thinking }: CountRequest): Record<string, JsonValue> {
  return thinking == null ? {} : { enable_thinking: thinking.type !== 'disabled' }
}

/** A conversation that ends with the assistant's own words is to be continued, not answered. */
function prefill(messages: readonly ChatMessage[]): Record<string, JsonValue> {
  const last = messages.at(-1)
  const continues =
    last?.role === 'assistant' && last.toolCalls === undefined && last.content !== ''
  return continues ? { continue_final_message: true } : {}
}

function grammarOf({ output_config: config }: MessagesRequest): Grammar | null {
  const format = config?.format
  if (format == null) return null
  if (format.type !== 'json_schema' || format.schema === undefined) {
    const message = 'The only output format is json_schema, with a schema'
    throw badField('output_config.format', message, 'unsupported')
  }
  checkSchema(format.schema, 'output_config.format.schema')
  return { kind: 'json-schema', schema: format.schema as JsonValue }
}
