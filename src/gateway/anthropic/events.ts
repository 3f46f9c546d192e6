// A message as a stream of events: start, its blocks one after the other, what it came to, stop.
import type { Part, Token, Usage } from '../../core/serving/request.ts'
import { joinParts } from '../answers/join-parts.ts'
import type { Ending } from '../answers/run.ts'
import type { StreamRenderer } from '../answers/stream.ts'
import type { ApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import { anthropicError } from './error-shape.ts'
import { type MessageHeader, signature, stopReason, toolUseId, usageOf } from './message.ts'

type BlockKind = 'text' | 'thinking' | 'tool_use'

/** Real events: comments would not reach the clocks of all clients. */
export const ping = 'event: ping\ndata: {"type":"ping"}\n\n'

export class MessageEvents implements StreamRenderer {
  readonly #stream: EventStream
  readonly #header: MessageHeader
  #prompt: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }
  #open: BlockKind | null = null
  #index = -1
  #calls = 0
  #stop: string | null = null
  #ending: Ending | null = null

  constructor(stream: EventStream, header: MessageHeader) {
    this.#stream = stream
    this.#header = header
  }

  accepted({ promptTokens, cachedTokens }: { promptTokens: number; cachedTokens: number }): void {
    this.#prompt = { ...this.#prompt, promptTokens, cachedTokens }
  }

  begin(): void {
    const { id, model } = this.#header
    this.#event('message_start', {
      message: {
        id,
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: usageOf(this.#prompt),
      },
    })
  }

  tokens(_index: number, tokens: readonly Token[]): void {
    this.#parts(joinParts(tokens))
  }

  finish(_index: number, ending: Ending): void {
    this.#parts(ending.parts)
    this.#close()
    this.#ending = ending
  }

  complete(usage: Usage): void {
    const stop_reason = stopReason(this.#ending?.reason ?? 'stop', this.#stop)
    const delta = { stop_reason, stop_sequence: this.#stop }
    this.#event('message_delta', { delta, usage: usageOf(usage) })
    this.#event('message_stop', {})
  }

  fail(error: ApiError): void {
    this.#stream.event('error', JSON.stringify(anthropicError(error)))
  }

  #parts(parts: readonly Part[]): void {
    for (const part of parts) {
      switch (part.type) {
        case 'content':
          this.#enter('text')
          this.#delta(`"text_delta","text":${JSON.stringify(part.text)}`)
          break
        case 'reasoning':
          this.#enter('thinking')
          this.#delta(`"thinking_delta","thinking":${JSON.stringify(part.text)}`)
          break
        case 'tool-call':
          this.#openCall(part.name)
          this.#arguments(part.arguments)
          this.#close()
          break
        case 'tool-call-start':
          this.#openCall(part.name)
          break
        case 'tool-call-delta':
          this.#arguments(part.arguments)
          break
        case 'tool-call-end':
          this.#close()
          break
        case 'stop':
          this.#stop = part.text
          break
        case 'embedding':
          break
      }
    }
  }

  #enter(kind: 'text' | 'thinking'): void {
    if (this.#open === kind) return
    const empty = kind === 'text' ? { text: '' } : { thinking: '', signature: '' }
    this.#start(kind, { type: kind, ...empty })
  }

  #openCall(name: string): void {
    const id = toolUseId(this.#header.id, this.#calls++)
    this.#start('tool_use', { type: 'tool_use', id, name, input: {} })
  }

  #arguments(json: string): void {
    if (this.#open === 'tool_use')
      this.#delta(`"input_json_delta","partial_json":${JSON.stringify(json)}`)
  }

  #start(kind: BlockKind, content_block: object): void {
    this.#close()
    this.#open = kind
    this.#index += 1
    this.#event('content_block_start', { index: this.#index, content_block })
  }

  #close(): void {
    if (this.#open === null) return
    if (this.#open === 'thinking') this.#delta(`"signature_delta","signature":"${signature}"`)
    this.#open = null
    this.#event('content_block_stop', { index: this.#index })
  }

  #delta(fields: string): void {
    this.#stream.event(
      'content_block_delta',
      `{"type":"content_block_delta","index":${this.#index},"delta":{"type":${fields}}}`,
    )
  }

  #event(type: string, fields: object): void {
    this.#stream.event(type, JSON.stringify({ type, ...fields }))
  }
}
