// OpenAI's chat request, as clients really send it, and its translation into a question.
import { z } from 'zod'
import type { ModelRef } from '../../core/cluster/group-plan.ts'
import type { ChatMessage, Question } from '../../core/serving/request.ts'
import { ApiError } from '../api-error.ts'
import { loneSurrogate } from '../well-formed.ts'

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const

const contentPart = z.looseObject({ type: z.string(), text: z.string().optional() })

const messageSchema = z.looseObject({
  role: z.enum(roles, { error: `must be one of ${roles.join(', ')}` }),
  content: z.union([z.string(), z.array(contentPart), z.null()]).optional(),
  name: z.string().optional(),
  tool_call_id: z.string().optional(),
  tool_calls: z
    .array(
      z.looseObject({
        id: z.string().optional(),
        function: z.looseObject({
          name: z.string(),
          arguments: z.union([z.string(), z.record(z.string(), z.json())]),
        }),
      }),
    )
    .optional(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
})

const tokensMax = z
  .number({ error: 'must be a whole number of tokens' })
  .int('must be a whole number of tokens')
  .min(1, 'must be at least 1')
  .max(2 ** 31 - 1, 'is larger than any context')
  .nullish()

export const chatRequest = z.looseObject({
  model: z.string({ error: 'name a model; GET /v1/models lists them' }).min(1).max(500),
  messages: z.array(messageSchema).min(1, 'send at least one message'),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokensMax,
  max_completion_tokens: tokensMax,
  temperature: z.number().min(0).max(5).nullish(),
  top_p: z
    .number()
    .gt(0, 'must be above 0 and at most 1')
    .max(1, 'must be above 0 and at most 1')
    .nullish(),
  top_k: z.number().int().min(0).max(1_000_000).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().gt(0).max(10).nullish(),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/, 'keys are token ids'), z.number().min(-100).max(100))
    .nullish(),
  seed: z.number().int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16, 'at most 16 stop strings')]).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  n: z.number().int().min(1).nullish(),
  /** Not OpenAI's, but common: write on to max_tokens whatever the model would end with. */
  ignore_eos: z.boolean().nullish(),
})

export type ChatRequest = z.infer<typeof chatRequest>

export function toQuestion(
  request: ChatRequest,
  from: { model: ModelRef; seed: string; nowMs: number; cacheScope: string },
): Question {
  const { defaults } = from.model
  const stop = typeof request.stop === 'string' ? [request.stop] : (request.stop ?? [])
  if ((request.n ?? 1) !== 1) {
    throw new ApiError({ status: 400, message: 'Only n = 1 is supported', param: 'n' })
  }
  return {
    prompt: {
      kind: 'chat',
      messages: request.messages.map((message, index) => toMessage(message, index)),
      tools: [],
      variables: {},
      nowMs: from.nowMs,
    },
    sampling: {
      temperature: request.temperature ?? defaults.temperature ?? 0.7,
      topP: request.top_p ?? defaults.topP ?? 1,
      topK: request.top_k ?? defaults.topK ?? 0,
      minP: request.min_p ?? 0,
      repetitionPenalty: request.repetition_penalty ?? defaults.repetitionPenalty ?? 1,
      presencePenalty: request.presence_penalty ?? 0,
      frequencyPenalty: request.frequency_penalty ?? 0,
      logitBias: Object.entries(request.logit_bias ?? {}).map(
        ([id, bias]) => [Number(id), bias] as const,
      ),
      seed: request.seed == null ? from.seed : BigInt.asUintN(64, BigInt(request.seed)).toString(),
    },
    tokensMax: request.max_completion_tokens ?? request.max_tokens ?? null,
    stop: stop.filter((text) => text !== ''),
    ignoreEos: request.ignore_eos === true,
    logprobs: request.logprobs === true ? (request.top_logprobs ?? 0) : null,
    grammar: null,
    cacheScope: from.cacheScope,
  }
}

function toMessage(message: ChatRequest['messages'][number], index: number): ChatMessage {
  const content = textOf(message.content, index)
  const reasoning = message.reasoning ?? message.reasoning_content
  return {
    // Newer clients call the system message "developer"; templates know only the old name.
    role:
      message.role === 'developer' ? 'system' : message.role === 'function' ? 'tool' : message.role,
    content,
    ...(reasoning == null ? {} : { reasoning }),
    ...(message.name === undefined ? {} : { name: message.name }),
    ...(message.tool_call_id === undefined ? {} : { toolCallId: message.tool_call_id }),
    ...(message.tool_calls === undefined
      ? {}
      : {
          toolCalls: message.tool_calls.map((call) => ({
            ...(call.id === undefined ? {} : { id: call.id }),
            function: { name: call.function.name, arguments: call.function.arguments },
          })),
        }),
  }
}

function textOf(content: ChatRequest['messages'][number]['content'], index: number): string {
  const param = `messages.${index}.content`
  let text = ''
  if (typeof content === 'string') text = content
  for (const part of Array.isArray(content) ? content : []) {
    if (part.type !== 'text' && part.type !== 'input_text' && part.type !== 'output_text') {
      const message = `This model reads text only; a part of type "${part.type}" was sent`
      throw new ApiError({ status: 400, message, param })
    }
    text += part.text ?? ''
  }
  if (loneSurrogate(text)) {
    throw new ApiError({
      status: 400,
      message: 'The text holds half of a surrogate pair; send valid Unicode',
      param,
    })
  }
  return text
}
