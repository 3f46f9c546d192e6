// Chat messages as OpenAI's clients send them, and as chat templates want them.
import { z } from 'zod'
import type { ChatMessage, ToolCall } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { wellFormed } from '../well-formed.ts'

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const

const contentPart = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  refusal: z.string().optional(),
})

const callSchema = z.looseObject({
  id: z.string().optional(),
  function: z.looseObject({
    name: z.string(),
    arguments: z.union([z.string(), z.record(z.string(), z.json())]).default(''),
  }),
})

export const messageSchema = z.looseObject({
  role: z.enum(roles, { error: `must be one of ${roles.join(', ')}` }),
  content: z.union([z.string(), z.array(contentPart), z.null()]).optional(),
  name: z.string().nullish(),
  tool_call_id: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
})

type RequestMessage = z.infer<typeof messageSchema>

export function toMessages(messages: readonly RequestMessage[]): readonly ChatMessage[] {
  refuseRepeatedCalls(messages)
  return messages.map(toMessage)
}

function toMessage(message: RequestMessage, index: number): ChatMessage {
  const param = `messages.${index}`
  const reasoning = message.reasoning ?? message.reasoning_content
  return {
    role: roleOf(message.role),
    content: textOf(message.content, `${param}.content`),
    ...(reasoning == null ? {} : { reasoning: wellFormed(reasoning, `${param}.reasoning`) }),
    ...(message.name == null ? {} : { name: wellFormed(message.name, `${param}.name`) }),
    ...(message.tool_call_id == null ? {} : { toolCallId: message.tool_call_id }),
    ...(message.tool_calls == null || message.tool_calls.length === 0
      ? {}
      : { toolCalls: message.tool_calls.map(toCall) }),
  }
}

/** Newer clients call the system message "developer", older ones a tool "function"; templates know neither. */
function roleOf(role: (typeof roles)[number]): string {
  if (role === 'developer') return 'system'
  return role === 'function' ? 'tool' : role
}

function toCall(call: z.infer<typeof callSchema>): ToolCall {
  return {
    ...(call.id === undefined ? {} : { id: call.id }),
    function: { name: call.function.name, arguments: call.function.arguments },
  }
}

const textTypes = new Set(['text', 'input_text', 'output_text', 'refusal'])

function textOf(content: RequestMessage['content'], param: string): string {
  let text = ''
  if (typeof content === 'string') text = content
  for (const part of Array.isArray(content) ? content : []) {
    if (!textTypes.has(part.type)) {
      const message = `This model reads text only; a part of type "${part.type.slice(0, 40)}" was sent`
      throw badField(param, message, 'unsupported')
    }
    text += part.text ?? part.refusal ?? ''
  }
  return wellFormed(text, param)
}

/** Two calls or two results under one id cannot be told apart. Across turns ids may repeat: some servers count anew. */
function refuseRepeatedCalls(messages: readonly RequestMessage[]): void {
  let answered = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const called = new Set<string>()
    for (const { id } of message.tool_calls ?? []) {
      if (id === undefined) continue
      if (called.has(id)) throw repeated(`messages.${index}.tool_calls`, id)
      called.add(id)
    }
    if (message.role !== 'tool') answered = new Set()
    else if (message.tool_call_id != null) {
      if (answered.has(message.tool_call_id))
        throw repeated(`messages.${index}.tool_call_id`, message.tool_call_id)
      answered.add(message.tool_call_id)
    }
  }
}

function repeated(param: string, id: string): Error {
  return badField(param, `The tool call id "${id.slice(0, 60)}" is there twice`)
}
