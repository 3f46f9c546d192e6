// Many chat templates take one system message, and only as the first.
import type { ChatMessage } from '../core/serving/request.ts'

/** The system messages that a conversation opens with, as one. */
export function joinLeadingSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  let count = 0
  while (messages[count]?.role === 'system') count += 1
  if (count < 2) return messages
  const content = messages
    .slice(0, count)
    .map((message) => message.content)
    .filter((text) => text !== '')
    .join('\n\n')
  return [{ role: 'system', content }, ...messages.slice(count)]
}
