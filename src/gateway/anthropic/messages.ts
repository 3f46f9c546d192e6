// Anthropic's messages as chat templates want them: a turn's blocks become one message, tool results
// become messages of their own.
import { z } from 'zod'
import type { ChatMessage, ToolCall } from '../../core/serving/request.ts'
import { badField } from '../api-error.ts'
import { joinLeadingSystem } from '../join-system.ts'
import { parseBody } from '../read-json.ts'
import { wellFormed } from '../well-formed.ts'
import type { ContentBlock, CountRequest } from './request.ts'
import { systemText } from './system.ts'

const textBlock = z.looseObject({ text: z.string() })
const thinkingBlock = z.looseObject({ thinking: z.string() })
const toolUseBlock = z.looseObject({
  id: z.string(),
  name: z.string(),
  input: z.json().optional(),
})
const toolResultBlock = z.looseObject({
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
})
const documentBlock = z.looseObject({
  source: z.looseObject({ type: z.string(), data: z.string().optional() }),
  title: z.string().nullish(),
})

export function toMessages(
  request: Pick<CountRequest, 'messages' | 'system'>,
): readonly ChatMessage[] {
  const messages: ChatMessage[] = []
  const system = systemText(request.system)
  if (system !== '') messages.push({ role: 'system', content: wellFormed(system, 'system') })
  const names = new Map<string, string>()
  for (const [index, { role, content }] of request.messages.entries()) {
    const param = `messages.${index}.content`
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    if (role === 'assistant') messages.push(assistantMessage(blocks, { param, names }))
    else messages.push(...userMessages(blocks, { role, param, names }))
  }
  return joinLeadingSystem(messages)
}

interface Place {
  readonly param: string
  /** Tools by the id of their call, for results that name only the id. */
  readonly names: Map<string, string>
}

function assistantMessage(blocks: readonly ContentBlock[], { param, names }: Place): ChatMessage {
  let content = ''
  let reasoning = ''
  const toolCalls: ToolCall[] = []
  for (const [index, block] of blocks.entries()) {
    const place = `${param}.${index}`
    if (block.type === 'text') content += parseBody(textBlock, block, place).text
    else if (block.type === 'thinking') reasoning += parseBody(thinkingBlock, block, place).thinking
    else if (block.type === 'tool_use') {
      const { id, name, input } = parseBody(toolUseBlock, block, place)
      if (toolCalls.some((call) => call.id === id))
        throw badField(place, `The tool use id "${id.slice(0, 60)}" is there twice`)
      names.set(id, name)
      toolCalls.push({ id, function: { name, arguments: input ?? {} } })
      // What another provider hid, nobody here can read.
    } else if (block.type !== 'redacted_thinking') throw unreadable(block, place)
  }
  return {
    role: 'assistant',
    content: wellFormed(content, param),
    ...(reasoning === '' ? {} : { reasoning: wellFormed(reasoning, param) }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  }
}

function userMessages(
  blocks: readonly ContentBlock[],
  { role, param, names }: Place & { role: string },
): readonly ChatMessage[] {
  const messages: ChatMessage[] = []
  const answered = new Set<string>()
  let text: string[] = []
  const flush = (): void => {
    if (text.length > 0) messages.push({ role, content: wellFormed(text.join('\n\n'), param) })
    text = []
  }
  for (const [index, block] of blocks.entries()) {
    const place = `${param}.${index}`
    if (block.type !== 'tool_result') {
      text.push(textOf(block, place))
      continue
    }
    flush()
    const { tool_use_id: id, content } = parseBody(toolResultBlock, block, place)
    if (answered.has(id))
      throw badField(place, `The tool use id "${id.slice(0, 60)}" is answered twice`)
    answered.add(id)
    const name = names.get(id)
    messages.push({
      role: 'tool',
      content: wellFormed(resultText(content, `${place}.content`), place),
      toolCallId: id,
      ...(name === undefined ? {} : { name }),
    })
  }
  flush()
  return messages.length === 0 ? [{ role, content: '' }] : messages
}

function resultText(content: z.infer<typeof toolResultBlock>['content'], param: string): string {
  if (content == null) return ''
  if (typeof content === 'string') return content
  return content.map((block, index) => textOf(block, `${param}.${index}`)).join('\n\n')
}

function textOf(block: ContentBlock, param: string): string {
  if (block.type === 'text') return parseBody(textBlock, block, param).text
  if (block.type === 'document') {
    const { source, title } = parseBody(documentBlock, block, param)
    if (source.type === 'text') return `${title == null ? '' : `${title}\n\n`}${source.data ?? ''}`
  }
  throw unreadable(block, param)
}

function unreadable(block: ContentBlock, param: string): Error {
  const what = block.type === 'image' ? 'an image' : `a block of type "${block.type.slice(0, 40)}"`
  return badField(param, `This model reads text only; ${what} was sent`, 'unsupported')
}
