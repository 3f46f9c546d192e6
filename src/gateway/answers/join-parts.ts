// For a reader that has fallen behind: what several tokens released, as few parts as possible.
import type { Part, Token } from '../../core/serving/request.ts'

export function joinParts(tokens: readonly Token[]): readonly Part[] {
  const [first] = tokens
  if (tokens.length === 1 && first !== undefined) return first.parts
  const joined: Part[] = []
  for (const { parts } of tokens) for (const part of parts) add(joined, part)
  return joined
}

function add(joined: Part[], part: Part): void {
  const last = joined.at(-1)
  if (part.type === 'content' && last?.type === 'content')
    joined[joined.length - 1] = { type: 'content', text: last.text + part.text }
  else if (part.type === 'reasoning' && last?.type === 'reasoning')
    joined[joined.length - 1] = { type: 'reasoning', text: last.text + part.text }
  else if (part.type === 'tool-call-delta' && last?.type === 'tool-call-delta')
    joined[joined.length - 1] = { ...last, arguments: last.arguments + part.arguments }
  else joined.push(part)
}
