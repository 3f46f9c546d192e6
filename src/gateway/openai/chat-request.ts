// OpenAI's chat request, as clients really send it, and its translation into questions: one per choice.
import { z } from 'zod'
import type { JsonValue } from '../../core/json.ts'
import { limits } from '../../core/limits.ts'
import { deriveSeed } from '../../core/serving/derive-seed.ts'
import type { Question } from '../../core/serving/request.ts'
import type { Ask } from '../answers/run.ts'
import { badField } from '../api-error.ts'
import { type QuestionSource, effortVariables } from '../question-source.ts'
import { samplingFor } from '../sampling.ts'
import { messageSchema, toMessages } from './chat-messages.ts'
import { chatTools, toolChoiceSchema, toolSchema } from './chat-tools.ts'
import { responseFormat, toGrammar } from './response-format.ts'
import {
  samplingFields,
  samplingWishes,
  stopField,
  stopStrings,
  tokensMax,
} from './sampling-fields.ts'

export const modelField = z
  .string({ error: 'name a model; GET /v1/models lists them' })
  .min(1)
  .max(500)

export const choicesField = z
  .number()
  .int()
  .min(1)
  .max(limits.choicesMax, `at most ${limits.choicesMax} choices can be asked for`)
  .nullish()

export const chatRequest = z.looseObject({
  model: modelField,
  messages: z.array(messageSchema).min(1, 'send at least one message'),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokensMax,
  max_completion_tokens: tokensMax,
  ...samplingFields,
  stop: stopField,
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  n: choicesField,
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: z.string().max(40).nullish(),
  chat_template_kwargs: z.record(z.string(), z.json()).nullish(),
  /** Not OpenAI's, but common: write on to max_tokens whatever the model would end with. */
  ignore_eos: z.boolean().nullish(),
})

export type ChatRequest = z.infer<typeof chatRequest>

export function chatAsks(request: ChatRequest, from: QuestionSource): readonly Ask[] {
  refuseOldForms(request)
  const first = toQuestion(request, from)
  return Array.from({ length: request.n ?? 1 }, (_, choice) => {
    const seed = deriveSeed(first.sampling.seed, choice)
    return { prompt: 0, question: { ...first, sampling: { ...first.sampling, seed } } }
  })
}

function toQuestion(request: ChatRequest, from: QuestionSource): Question {
  if (request.top_logprobs != null && request.logprobs !== true)
    throw badField('top_logprobs', 'top_logprobs needs logprobs to be true')
  return {
    prompt: {
      kind: 'chat',
      messages: toMessages(request.messages),
      ...chatTools(request),
      variables: templateVariables(request),
      nowMs: from.nowMs,
    },
    sampling: samplingFor(samplingWishes(request), {
      defaults: from.model.defaults,
      seed: from.seed,
    }),
    tokensMax: request.max_completion_tokens ?? request.max_tokens ?? null,
    stop: stopStrings(request.stop),
    ignoreEos: request.ignore_eos === true,
    logprobs: request.logprobs === true ? (request.top_logprobs ?? 0) : null,
    grammar: toGrammar(request.response_format, 'response_format'),
    cacheScope: from.cacheScope,
  }
}

function templateVariables(request: ChatRequest): Readonly<Record<string, JsonValue>> {
  return {
    ...effortVariables(request.reasoning_effort),
    ...(request.chat_template_kwargs as Record<string, JsonValue> | null | undefined),
  }
}

function refuseOldForms(request: ChatRequest): void {
  if (request['functions'] != null || request['function_call'] != null)
    throw badField('functions', '"functions" is the old form; send "tools" and "tool_choice"')
  const modalities = request['modalities']
  if (Array.isArray(modalities) && modalities.some((kind) => kind !== 'text'))
    throw badField('modalities', 'Answers are text only', 'unsupported')
}
