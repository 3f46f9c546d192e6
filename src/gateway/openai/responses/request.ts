// The request of the Responses API, as Codex and the SDKs send it.
import { z } from 'zod'
import { choicesField, modelField } from '../chat-request.ts'
import { responseFormat } from '../response-format.ts'
import { samplingFields, tokensMax } from '../sampling-fields.ts'

/** Items are checked where they are read: their kinds are many, and each has its own fields. */
export const itemSchema = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  id: z.string().nullish(),
})

export type Item = z.infer<typeof itemSchema>

export const responsesRequest = z.looseObject({
  model: modelField,
  input: z.union([z.string(), z.array(itemSchema)]).optional(),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  previous_response_id: z.string().max(200).nullish(),
  max_output_tokens: tokensMax,
  ...samplingFields,
  n: choicesField,
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: responseFormat.nullish() }).nullish(),
  reasoning: z.looseObject({ effort: z.string().max(40).nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  truncation: z.string().nullish(),
  user: z.string().nullish(),
})

export type ResponsesRequest = z.infer<typeof responsesRequest>
