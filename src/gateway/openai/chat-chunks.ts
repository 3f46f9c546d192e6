// A chat answer as a stream of chunks. Everything that is the same in each chunk is written once.
import type { Part, Token, Usage } from '../../core/serving/request.ts'
import { joinParts } from '../answers/join-parts.ts'
import type { Ending } from '../answers/run.ts'
import type { StreamRenderer } from '../answers/stream.ts'
import type { ApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import { type ChatHeader, callId } from './chat-completion.ts'
import { openAiError } from './error-shape.ts'
import { logprobEntries } from './logprobs.ts'
import { finishReasons, usageOf } from './usage.ts'

export class ChatChunks implements StreamRenderer {
  readonly #stream: EventStream
  readonly #header: ChatHeader
  readonly #head: string
  readonly #choices: number
  readonly #includeUsage: boolean
  /** Tool calls begun so far, by choice. */
  readonly #calls: number[]

  constructor(
    stream: EventStream,
    header: ChatHeader,
    options: { choices: number; includeUsage: boolean },
  ) {
    this.#stream = stream
    this.#header = header
    this.#choices = options.choices
    this.#includeUsage = options.includeUsage
    this.#calls = Array.from({ length: options.choices }, () => 0)
    const { id, created, model, system_fingerprint } = header
    const head = { id, object: 'chat.completion.chunk', created, model, system_fingerprint }
    this.#head = JSON.stringify(head).slice(0, -1)
  }

  begin(): void {
    for (let choice = 0; choice < this.#choices; choice++)
      this.#chunk(choice, '{"role":"assistant","content":""}')
  }

  tokens(choice: number, tokens: readonly Token[]): void {
    const parts = joinParts(tokens)
    if (tokens[0]?.logprob === undefined) return this.#parts(choice, parts)
    const logprobs = logprobEntries(tokens)
    this.#parts(choice, parts, logprobs.length === 0 ? null : JSON.stringify({ content: logprobs }))
  }

  finish(choice: number, { reason, parts }: Ending): void {
    this.#parts(choice, parts)
    this.#chunk(choice, '{}', { finish: finishReasons[reason] })
  }

  complete(usage: Usage): void {
    if (this.#includeUsage)
      this.#stream.data(`${this.#head},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}`)
    this.#stream.data('[DONE]')
  }

  fail(error: ApiError): void {
    this.#stream.data(JSON.stringify(openAiError(error)))
  }

  /** One chunk per part; a token without text yet shows nothing but its probability. */
  #parts(choice: number, parts: readonly Part[], logprobs: string | null = null): void {
    let pending = logprobs
    for (const part of parts) {
      if (part.type === 'content') {
        this.#chunk(choice, `{"content":${JSON.stringify(part.text)}}`, { logprobs: pending })
        pending = null
      } else if (part.type === 'reasoning') this.#reasoning(choice, part.text)
      else this.#callPart(choice, part)
    }
    if (pending !== null) this.#chunk(choice, '{"content":""}', { logprobs: pending })
  }

  /** Some clients read one name, some the other. */
  #reasoning(choice: number, text: string): void {
    const json = JSON.stringify(text)
    this.#chunk(choice, `{"reasoning_content":${json},"reasoning":${json}}`)
  }

  #callPart(choice: number, part: Part): void {
    if (part.type === 'tool-call' || part.type === 'tool-call-start') {
      const index = this.#calls[choice] ?? 0
      this.#calls[choice] = index + 1
      const id = callId(this.#header.id, choice, index)
      // Id and name come once; whoever sees them again begins another call.
      const call = { index, id, type: 'function', function: { name: part.name, arguments: '' } }
      this.#chunk(choice, JSON.stringify({ tool_calls: [call] }))
      if (part.type === 'tool-call') this.#arguments(choice, part.arguments)
    } else if (part.type === 'tool-call-delta') this.#arguments(choice, part.arguments)
  }

  #arguments(choice: number, text: string): void {
    if (text === '') return
    const index = (this.#calls[choice] ?? 1) - 1
    this.#chunk(choice, JSON.stringify({ tool_calls: [{ index, function: { arguments: text } }] }))
  }

  #chunk(
    choice: number,
    delta: string,
    { finish = null, logprobs = null }: { finish?: string | null; logprobs?: string | null } = {},
  ): void {
    const reason = finish === null ? 'null' : `"${finish}"`
    this.#stream.data(
      `${this.#head},"choices":[{"index":${choice},"delta":${delta},"logprobs":${logprobs ?? 'null'},"finish_reason":${reason}}]}`,
    )
  }
}
