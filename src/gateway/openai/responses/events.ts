// A response as a stream of events, in the order that Codex and OpenAI's SDKs parse: every item is added,
// filled and done before the next is added, and the last event holds everything once more.
import type { Part, Token, Usage } from '../../../core/serving/request.ts'
import { joinParts } from '../../answers/join-parts.ts'
import type { Ending } from '../../answers/run.ts'
import type { StreamRenderer } from '../../answers/stream.ts'
import type { ApiError } from '../../api-error.ts'
import type { EventStream } from '../../event-stream.ts'
import { logprobEntries } from '../logprobs.ts'
import { type OutputItem, type OutputOptions, OutputItems } from './output.ts'
import {
  type ResponseHead,
  type ResponseObject,
  type ResponseState,
  responseObject,
  statusFor,
} from './response-object.ts'

export interface EventOptions extends OutputOptions {
  readonly head: ResponseHead
  /** The response as it stands when it is over, for whoever keeps it. */
  readonly onEnd: (response: ResponseObject) => void
}

export class ResponseEvents implements StreamRenderer {
  readonly #stream: EventStream
  readonly #options: EventOptions
  readonly #items: OutputItems
  #open: OutputItem | null = null
  /** The unchanging beginning of the open item's deltas. */
  #deltaHead = ''
  #logprobs: object[] = []
  #sequence = 0
  #ending: Ending | null = null

  constructor(stream: EventStream, options: EventOptions) {
    this.#stream = stream
    this.#options = options
    this.#items = new OutputItems(options)
  }

  begin(): void {
    this.#lifecycle('response.created', { status: 'in_progress', output: [] })
    this.#lifecycle('response.in_progress', { status: 'in_progress', output: [] })
  }

  /** Comments would not reset Codex's clock. Clients take the response in it for the newest, so it is whole. */
  keepAlive(): string {
    const state = { status: 'in_progress', output: this.#items.list } as const
    return `event: response.in_progress\ndata: ${this.#lifecycleJson('response.in_progress', state)}\n\n`
  }

  tokens(_index: number, tokens: readonly Token[]): void {
    const logprobs = tokens[0]?.logprob === undefined ? [] : logprobEntries(tokens)
    this.#parts(joinParts(tokens), logprobs)
  }

  finish(_index: number, ending: Ending): void {
    this.#parts(ending.parts, [])
    this.#close(statusFor(ending.reason))
    this.#ending = ending
  }

  complete(usage: Usage): void {
    const status = statusFor(this.#ending?.reason ?? 'stop')
    this.#end(`response.${status}`, { status, output: this.#items.list, usage })
  }

  fail(error: ApiError): void {
    this.#close('incomplete')
    const status = error.code === 'cancelled' ? 'cancelled' : 'failed'
    this.#end('response.failed', { status, output: this.#items.list, error })
  }

  #parts(parts: readonly Part[], logprobs: readonly object[]): void {
    for (const part of parts) {
      switch (part.type) {
        case 'content':
          this.#text(part.text, logprobs)
          break
        case 'reasoning':
          this.#reasoning(part.text)
          break
        case 'tool-call':
          this.#openCall(part.name)
          this.#arguments(part.arguments)
          this.#close('completed')
          break
        case 'tool-call-start':
          this.#openCall(part.name)
          break
        case 'tool-call-delta':
          this.#arguments(part.arguments)
          break
        case 'tool-call-end':
          this.#close('completed')
          break
        case 'stop':
        case 'embedding':
          break
      }
    }
  }

  #text(text: string, logprobs: readonly object[]): void {
    if (this.#open?.type !== 'message') {
      this.#close('completed')
      const item = this.#items.openMessage()
      this.#added(item, { ...item, content: [] })
      this.#partEvent('response.content_part.added', item.content[0])
      this.#deltaHead = this.#deltaStart('response.output_text.delta', true)
      this.#logprobs = []
    }
    if (this.#open?.type !== 'message') return
    for (const part of this.#open.content) part.text += text
    this.#logprobs.push(...logprobs)
    const beside = `,"logprobs":${logprobs.length === 0 ? '[]' : JSON.stringify(logprobs)}`
    this.#delta('response.output_text.delta', text, beside)
  }

  #reasoning(text: string): void {
    if (this.#open?.type !== 'reasoning') {
      this.#close('completed')
      const item = this.#items.openReasoning()
      this.#added(item, { ...item, content: [] })
      this.#partEvent('response.content_part.added', item.content[0])
      this.#deltaHead = this.#deltaStart('response.reasoning_text.delta', true)
    }
    if (this.#open?.type !== 'reasoning') return
    for (const part of this.#open.content) part.text += text
    this.#delta('response.reasoning_text.delta', text)
  }

  #openCall(name: string): void {
    this.#close('completed')
    const item = this.#items.openCall(name)
    this.#added(item, item)
    this.#deltaHead = this.#deltaStart('response.function_call_arguments.delta', false)
  }

  #arguments(text: string): void {
    if (this.#open?.type === 'function_call') {
      this.#open.arguments += text
      this.#delta('response.function_call_arguments.delta', text)
      // Freeform input can be read only when it is whole: it comes wrapped in JSON.
    } else if (this.#open?.type === 'custom_tool_call') this.#open.input += text
  }

  #close(status: 'completed' | 'incomplete'): void {
    const item = this.#open
    if (item === null) return
    this.#open = null
    this.#items.close(item, status)
    const at = { item_id: item.id, output_index: this.#items.list.length - 1 }
    if (item.type === 'message') {
      for (const part of item.content) part.logprobs = this.#logprobs
      const [part] = item.content
      const done = { ...at, content_index: 0, text: part?.text ?? '', logprobs: this.#logprobs }
      this.#event('response.output_text.done', done)
      this.#event('response.content_part.done', { ...at, content_index: 0, part })
    } else if (item.type === 'reasoning') {
      const [part] = item.content
      const done = { ...at, content_index: 0, text: part?.text ?? '' }
      this.#event('response.reasoning_text.done', done)
      this.#event('response.content_part.done', { ...at, content_index: 0, part })
    } else if (item.type === 'function_call') {
      const { name, arguments: text } = item
      this.#event('response.function_call_arguments.done', { ...at, name, arguments: text })
    } else {
      const { input } = item
      this.#event('response.custom_tool_call_input.delta', { ...at, delta: input })
      this.#event('response.custom_tool_call_input.done', { ...at, input })
    }
    this.#event('response.output_item.done', { output_index: at.output_index, item })
  }

  #added(item: OutputItem, shown: object): void {
    this.#open = item
    const output_index = this.#items.list.length - 1
    this.#event('response.output_item.added', { output_index, item: shown })
  }

  #partEvent(type: string, part: object | undefined): void {
    const output_index = this.#items.list.length - 1
    this.#event(type, { item_id: this.#open?.id, output_index, content_index: 0, part })
  }

  #deltaStart(type: string, hasContent: boolean): string {
    const output_index = this.#items.list.length - 1
    const place = { type, item_id: this.#open?.id, output_index }
    return JSON.stringify(hasContent ? { ...place, content_index: 0 } : place).slice(0, -1)
  }

  #delta(type: string, text: string, beside = ''): void {
    this.#stream.event(
      type,
      `${this.#deltaHead},"delta":${JSON.stringify(text)}${beside},"sequence_number":${this.#sequence++}}`,
    )
  }

  #event(type: string, fields: object): void {
    const json = JSON.stringify({ type, ...fields, sequence_number: this.#sequence++ })
    this.#stream.event(type, json)
  }

  #lifecycle(type: string, state: ResponseState): void {
    this.#stream.event(type, this.#lifecycleJson(type, state))
  }

  #lifecycleJson(type: string, state: ResponseState): string {
    const response = responseObject(this.#options.head, state)
    return JSON.stringify({ type, response, sequence_number: this.#sequence++ })
  }

  #end(type: string, state: ResponseState): void {
    this.#options.onEnd(responseObject(this.#options.head, state))
    this.#lifecycle(type, state)
  }
}
