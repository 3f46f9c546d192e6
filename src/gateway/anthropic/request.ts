// Anthropic's messages request, as Claude Code and the SDKs send it.
import { z } from 'zod'

export const modelField = z
  .string({ error: 'name a model; GET /v1/models lists them' })
  .min(1)
  .max(500)

const block = z.looseObject({ type: z.string() })
export type ContentBlock = z.infer<typeof block>

export const messageSchema = z.looseObject({
  role: z.enum(['user', 'assistant', 'system'], { error: 'must be user or assistant' }),
  content: z.union([z.string(), z.array(block)], { error: 'must be a text or a list of blocks' }),
})

export const systemSchema = z.union([
  z.string(),
  z.array(z.looseObject({ type: z.literal('text'), text: z.string() })),
])

const toolSchema = z.looseObject({
  type: z.string().nullish(),
  name: z.string({ error: 'a tool needs a name' }),
  description: z.string().nullish(),
  input_schema: z.json().optional(),
})

const toolChoiceSchema = z.looseObject({
  type: z.enum(['auto', 'any', 'tool', 'none']),
  name: z.string().optional(),
  disable_parallel_tool_use: z.boolean().nullish(),
})

const thinkingSchema = z.looseObject({ type: z.enum(['enabled', 'disabled', 'adaptive']) })

/** What counting needs. */
export const countRequest = z.looseObject({
  model: modelField,
  messages: z.array(messageSchema).min(1, 'send at least one message'),
  system: systemSchema.nullish(),
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  thinking: thinkingSchema.nullish(),
})

export const messagesRequest = countRequest.extend({
  max_tokens: z
    .number({ error: 'must be a whole number of tokens' })
    .int('must be a whole number of tokens')
    .min(1, 'must be at least 1')
    .max(2 ** 31 - 1, 'is larger than any context'),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(5).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.number().int().min(0).max(1_000_000).nullish(),
  stop_sequences: z.array(z.string()).max(16, 'at most 16 stop sequences').nullish(),
  output_config: z
    .looseObject({
      format: z.looseObject({ type: z.string(), schema: z.json().optional() }).nullish(),
      effort: z.string().nullish(),
    })
    .nullish(),
})

export type CountRequest = z.infer<typeof countRequest>
export type MessagesRequest = z.infer<typeof messagesRequest>
