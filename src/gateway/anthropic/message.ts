// A message in one piece.
import type { FinishReason, Usage } from '../../core/serving/request.ts'
import type { Block } from '../answers/blocks.ts'
import type { WholeRenderer } from '../answers/whole.ts'
import { anthropicError } from './error-shape.ts'

export interface MessageHeader {
  readonly id: string
  /** The name the client asked for, echoed. */
  readonly model: string
}

/** Clients send thoughts back only together with a signature; ours proves nothing and is not looked at. */
export const signature = 'YnVzaGVs'

export function toolUseId(messageId: string, index: number): string {
  return `toolu_${messageId.slice(-18)}_${index}`
}

export function stopReason(reason: FinishReason, stop: string | null): string {
  if (reason === 'length') return 'max_tokens'
  if (reason === 'tool-calls') return 'tool_use'
  return stop === null ? 'end_turn' : 'stop_sequence'
}

/** What was read from a cache is counted apart. */
export function usageOf(usage: Usage): Record<string, number> {
  return {
    input_tokens: usage.promptTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.completionTokens,
  }
}

export function wholeMessage({ id, model }: MessageHeader): WholeRenderer {
  return {
    fail: anthropicError,
    render([answer], usage) {
      const { blocks, ending } = answer ?? { blocks: null, ending: null }
      const stop = blocks?.stop ?? null
      const toolIds = { next: 0 }
      return {
        id,
        type: 'message',
        role: 'assistant',
        model,
        content: (blocks?.list ?? []).map((block) => contentBlock(id, block, toolIds)),
        stop_reason: stopReason(ending?.reason ?? 'stop', stop),
        stop_sequence: stop,
        usage: usageOf(usage),
      }
    },
  }
}

function contentBlock(id: string, block: Block, toolIds: { next: number }): object {
  if (block.type === 'content') return { type: 'text', text: block.text }
  if (block.type === 'reasoning') return { type: 'thinking', thinking: block.text, signature }
  const input = parsedInput(block.arguments)
  return { type: 'tool_use', id: toolUseId(id, toolIds.next++), name: block.name, input }
}

/** Here arguments are an object; a call that was cut off has none that could be read. */
function parsedInput(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}
