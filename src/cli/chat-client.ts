// A small client of our own chat API for the terminal.
import { createParser } from 'eventsource-parser'
import { UserError } from './command.ts'
import type { DaemonClient } from './daemon-client.ts'

export interface ChatTurn {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: string
}

export interface ChatAsk {
  readonly model: string
  readonly messages: readonly ChatTurn[]
  readonly signal: AbortSignal
  readonly temperature?: number
  readonly maxTokens?: number
  readonly onText: (piece: string) => void
}

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly reasoning?: string }
  }[]
  readonly usage?: unknown
  readonly error?: { readonly message: string }
}

export async function streamChat(
  daemon: DaemonClient,
  ask: ChatAsk,
): Promise<{ text: string; usage: unknown }> {
  const body = {
    model: ask.model,
    messages: ask.messages,
    stream: true,
    stream_options: { include_usage: true },
    ...(ask.temperature === undefined ? {} : { temperature: ask.temperature }),
    ...(ask.maxTokens === undefined ? {} : { max_tokens: ask.maxTokens }),
  }
  const response = await daemon.request('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify(body),
    signal: ask.signal,
  })
  if (!response.ok || response.body === null) {
    const failed = (await response.json().catch(() => null)) as Chunk | null
    throw new UserError(failed?.error?.message ?? `The daemon answered ${response.status}`)
  }
  let text = ''
  let usage: unknown = null
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') return
      const chunk = JSON.parse(data) as Chunk
      if (chunk.error !== undefined) throw new UserError(chunk.error.message)
      if (chunk.usage != null) usage = chunk.usage
      const piece = chunk.choices?.[0]?.delta?.content ?? ''
      if (piece === '') return
      text += piece
      ask.onText(piece)
    },
  })
  const decoder = new TextDecoder()
  try {
    for await (const bytes of response.body)
      parser.feed(decoder.decode(bytes as Uint8Array, { stream: true }))
  } catch (error) {
    if (!ask.signal.aborted) throw error
  }
  return { text, usage }
}
