// Ollama's requests, as its own clients and Open WebUI send them.
import { z } from 'zod'
import type { JsonValue } from '../../core/json.ts'
import type { Grammar } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { checkSchema } from '../check-schema.ts'
import { toolSchema } from '../openai/chat-tools.ts'
import type { SamplingWishes } from '../sampling.ts'
import { keepAliveField } from './keep-alive.ts'

export const modelField = z
  .string({ error: 'name a model; GET /api/tags lists them' })
  .min(1)
  .max(500)

const number = z.number().nullish()

const optionsSchema = z.looseObject({
  temperature: z.number().min(0).max(5).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.number().int().min(0).max(1_000_000).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  repeat_penalty: z.number().gt(0).max(10).nullish(),
  presence_penalty: number,
  frequency_penalty: number,
  seed: z.number().int().nullish(),
  num_predict: z.number().int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
})

const common = {
  model: modelField,
  stream: z.boolean().nullish(),
  format: z.union([z.literal(''), z.literal('json'), z.record(z.string(), z.json())]).nullish(),
  options: optionsSchema.nullish(),
  keep_alive: keepAliveField,
  think: z.union([z.boolean(), z.string().max(40)]).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
}

const messageSchema = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool'], {
    error: 'must be one of system, user, assistant, tool',
  }),
  content: z.string().nullish(),
  thinking: z.string().nullish(),
  images: z.array(z.unknown()).nullish(),
  tool_name: z.string().nullish(),
  tool_call_id: z.string().nullish(),
  tool_calls: z
    .array(
      z.looseObject({
        id: z.string().optional(),
        function: z.looseObject({ name: z.string(), arguments: z.json().optional() }),
      }),
    )
    .nullish(),
})

export const chatRequest = z.looseObject({
  ...common,
  messages: z.array(messageSchema).nullish(),
  tools: z.array(toolSchema).nullish(),
})

export const generateRequest = z.looseObject({
  ...common,
  prompt: z.string().nullish(),
  system: z.string().nullish(),
  template: z.string().nullish(),
  suffix: z.string().nullish(),
  images: z.array(z.unknown()).nullish(),
  context: z.array(z.number()).nullish(),
  raw: z.boolean().nullish(),
})

export type ChatRequest = z.infer<typeof chatRequest>
export type GenerateRequest = z.infer<typeof generateRequest>
export type CommonRequest = Pick<ChatRequest, keyof typeof common>

export function samplingWishes({ options }: CommonRequest): SamplingWishes {
  return {
    temperature: options?.temperature,
    topP: options?.top_p,
    topK: options?.top_k,
    minP: options?.min_p,
    repetitionPenalty: options?.repeat_penalty,
    presencePenalty: options?.presence_penalty,
    frequencyPenalty: options?.frequency_penalty,
    seed: options?.seed,
  }
}

export function stopStrings({ options }: CommonRequest): readonly string[] {
  const stop = options?.stop
  return (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text !== '')
}

/** −1 and −2 mean "until it is done". */
export function tokensMax({ options }: CommonRequest): number | null {
  const wanted = options?.num_predict
  return wanted == null || wanted < 1 ? null : wanted
}

export function grammarOf({ format }: CommonRequest): Grammar | null {
  if (format == null || format === '') return null
  if (format === 'json') return { kind: 'json-object' }
  const schema = format as JsonValue
  checkSchema(schema, 'format')
  return { kind: 'json-schema', schema }
}

export function thinkVariables({ think }: CommonRequest): Record<string, JsonValue> {
  if (think == null) return {}
  if (typeof think === 'boolean') return { enable_thinking: think }
  return { enable_thinking: true, reasoning_effort: think }
}

export function refuseImages(images: readonly unknown[] | null | undefined, param: string): void {
  if (images == null || images.length === 0) return
  throw badField(param, 'This model reads text only; an image was sent', 'unsupported')
}
