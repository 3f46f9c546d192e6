// Input items as chat messages: what one turn of the model produced (reasoning, text, calls) becomes one
// assistant message again.
import { z } from 'zod'
import type { ChatMessage, ToolCall } from '../../../core/serving/request.ts'
import { badField } from '../../api-error.ts'
import { joinLeadingSystem } from '../../join-system.ts'
import { parseBody } from '../../read-json.ts'
import { wellFormed } from '../../well-formed.ts'
import { unsealReasoning } from './reasoning.ts'
import type { Item } from './request.ts'
import { foldedName } from './tools.ts'

const textParts = z.array(
  z.looseObject({ type: z.string(), text: z.string().optional(), refusal: z.string().optional() }),
)
const content = z.union([z.string(), textParts, z.null()]).optional()

const messageItem = z.looseObject({
  role: z.enum(['user', 'assistant', 'system', 'developer']),
  content,
})
const callItem = z.looseObject({
  call_id: z.string(),
  name: z.string(),
  namespace: z.string().nullish(),
  arguments: z.string().default(''),
  input: z.string().default(''),
})
const outputItem = z.looseObject({ call_id: z.string(), output: content })
const reasoningItem = z.looseObject({
  summary: textParts.nullish(),
  content: textParts.nullish(),
  encrypted_content: z.string().nullish(),
})

/** An assistant message that still grows. */
interface Turn {
  content: string
  reasoning: string
  readonly toolCalls: ToolCall[]
}

export function toMessages(
  items: readonly Item[],
  instructions: string | null | undefined,
): readonly ChatMessage[] {
  const reader = new ItemReader()
  if (instructions != null && instructions !== '')
    reader.add({ role: 'system', content: wellFormed(instructions, 'instructions') })
  for (const [index, item] of items.entries()) reader.take(item, `input.${index}`)
  const messages = reader.finish()
  if (messages.length === 0) throw badField('input', 'Send some input')
  return joinLeadingSystem(messages)
}

class ItemReader {
  readonly #messages: ChatMessage[] = []
  readonly #names = new Map<string, string>()
  #turn: Turn | null = null

  add(message: ChatMessage): void {
    this.#closeTurn()
    this.#messages.push(message)
  }

  finish(): readonly ChatMessage[] {
    this.#closeTurn()
    return this.#messages
  }

  take(item: Item, param: string): void {
    switch (item.type ?? (item.role === undefined ? '' : 'message')) {
      case 'message':
        return this.#takeMessage(item, param)
      case 'function_call':
      case 'custom_tool_call':
        return this.#takeCall(item, param)
      case 'function_call_output':
      case 'custom_tool_call_output': {
        const { call_id: id, output } = parseBody(outputItem, item, param)
        const name = this.#names.get(id)
        const text = textOf(output, `${param}.output`)
        const about = name === undefined ? {} : { name }
        return this.add({ role: 'tool', content: text, toolCallId: id, ...about })
      }
      case 'reasoning': {
        const reasoning = reasoningOf(parseBody(reasoningItem, item, param), param)
        const turn = this.#turnFor((open) => open.content === '' && open.toolCalls.length === 0)
        turn.reasoning += reasoning
        return
      }
      default: {
        const message = `Items of type "${String(item.type).slice(0, 40)}" are not understood here`
        throw badField(`${param}.type`, message, 'unsupported')
      }
    }
  }

  #takeMessage(item: Item, param: string): void {
    const { role, content: said } = parseBody(messageItem, item, param)
    const text = textOf(said, `${param}.content`)
    if (role === 'assistant')
      this.#turnFor((open) => open.content === '' && open.toolCalls.length === 0).content = text
    else this.add({ role: role === 'developer' ? 'system' : role, content: text })
  }

  #takeCall(item: Item, param: string): void {
    const call = parseBody(callItem, item, param)
    const name = foldedName(call.namespace ?? null, call.name)
    this.#names.set(call.call_id, name)
    const given = item.type === 'custom_tool_call' ? { input: call.input } : call.arguments
    const turn = this.#turnFor(() => true)
    turn.toolCalls.push({ id: call.call_id, function: { name, arguments: given } })
  }

  #turnFor(fits: (open: Turn) => boolean): Turn {
    if (this.#turn !== null && fits(this.#turn)) return this.#turn
    this.#closeTurn()
    this.#turn = { content: '', reasoning: '', toolCalls: [] }
    return this.#turn
  }

  #closeTurn(): void {
    if (this.#turn === null) return
    const { content: text, reasoning, toolCalls } = this.#turn
    this.#turn = null
    this.#messages.push({
      role: 'assistant',
      content: text,
      ...(reasoning === '' ? {} : { reasoning }),
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
    })
  }
}

const textTypes = new Set([
  'input_text',
  'output_text',
  'text',
  'refusal',
  'reasoning_text',
  'summary_text',
])

function textOf(said: z.infer<typeof content>, param: string): string {
  if (said == null) return ''
  if (typeof said === 'string') return wellFormed(said, param)
  let text = ''
  for (const part of said) {
    if (!textTypes.has(part.type)) {
      const message = `This model reads text only; a part of type "${part.type.slice(0, 40)}" was sent`
      throw badField(param, message, 'unsupported')
    }
    text += part.text ?? part.refusal ?? ''
  }
  return wellFormed(text, param)
}

/** Its own words first; sealed, when a client keeps only that; a summary when there is nothing better. */
function reasoningOf(item: z.infer<typeof reasoningItem>, param: string): string {
  const own = textOf(item.content, `${param}.content`)
  if (own !== '') return own
  const sealed = item.encrypted_content == null ? null : unsealReasoning(item.encrypted_content)
  return sealed ?? textOf(item.summary, `${param}.summary`)
}
