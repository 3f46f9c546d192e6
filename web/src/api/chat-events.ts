// From the bytes of a chat stream to what happened: pure, so that every way a stream can go is tested.
import { createParser } from 'eventsource-parser'
import { type Failure, refusalOf } from './failure.ts'

export interface TokenUsage {
  readonly promptTokens: number
  readonly completionTokens: number
}

export type ChatEvent =
  | { readonly kind: 'text-received'; readonly text: string }
  | { readonly kind: 'reasoning-received'; readonly text: string }
  | { readonly kind: 'answer-finished'; readonly reason: string }
  | { readonly kind: 'usage-received'; readonly usage: TokenUsage }
  | { readonly kind: 'answer-failed'; readonly failure: Failure }

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null
      readonly reasoning_content?: string | null
    } | null
    readonly finish_reason?: string | null
  }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
  readonly error?: unknown
}

export interface ChatStreamReader {
  feed(text: string): void
  /** To be called when the bytes end; a stream that ends without a finish or an error was cut off. */
  end(): void
}

/** One event is far below this; a reader that grows past it reads something else than a chat. */
const eventCharsMax = 4_000_000

export function readChatStream(report: (event: ChatEvent) => void): ChatStreamReader {
  let isOver = false
  /** The parser refuses further text; so does this reader. */
  let isBroken = false
  const fail = (failure: Failure): void => {
    if (isOver) return
    isOver = true
    report({ kind: 'answer-failed', failure })
  }
  const onChunk = (chunk: Chunk): void => {
    if (chunk.error !== undefined) {
      fail(refusalOf(chunk, { status: null, retryAfter: null }))
      return
    }
    if (chunk.usage != null) {
      const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = chunk.usage
      report({ kind: 'usage-received', usage: { promptTokens, completionTokens } })
    }
    // Nothing is added to an answer that has ended; only its usage may follow.
    if (isOver) return
    const choice = chunk.choices?.[0]
    const reasoning = choice?.delta?.reasoning_content ?? ''
    const text = choice?.delta?.content ?? ''
    if (reasoning !== '') report({ kind: 'reasoning-received', text: reasoning })
    if (text !== '') report({ kind: 'text-received', text })
    if (choice?.finish_reason == null) return
    isOver = true
    report({ kind: 'answer-finished', reason: choice.finish_reason })
  }
  const parser = createParser({
    maxBufferSize: eventCharsMax,
    onEvent({ data }) {
      if (data === '[DONE]') return
      const chunk = parseChunk(data)
      if (chunk === null) fail({ kind: 'unreadable' })
      else onChunk(chunk)
    },
    onError(error) {
      // Unknown fields are allowed by the format; only an endless event is fatal.
      if (error.type !== 'max-buffer-size-exceeded') return
      isBroken = true
      fail({ kind: 'unreadable' })
    },
  })
  return {
    feed(text) {
      if (!isBroken) parser.feed(text)
    },
    end: () => fail({ kind: 'cut-off' }),
  }
}

function parseChunk(data: string): Chunk | null {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}
