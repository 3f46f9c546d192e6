// OpenAI's chat answers: chunks for streams, one object otherwise.
import type { FinishReason, Part, Token, TokenLogprob, Usage } from '../../core/serving/request.ts'
import { type AnswerRenderer, type WholeAnswer, allParts, joinText } from '../answer.ts'
import type { ApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import { openAiError } from './error-shape.ts'

export interface ChatHeader {
  readonly id: string
  readonly created: number
  /** The name the client asked for, echoed. */
  readonly model: string
}

const finishReasons: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  cancelled: 'stop',
}

export function usageOf(usage: Usage): Record<string, unknown> {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }
}

function logprobEntry(token: TokenLogprob): Record<string, unknown> {
  const bytes = token.bytes ?? [...Buffer.from(token.text, 'utf8')]
  return {
    token: token.text,
    logprob: token.logprob,
    bytes,
    top_logprobs: token.top.map((other) => ({
      token: other.text,
      logprob: other.logprob,
      bytes: [...Buffer.from(other.text, 'utf8')],
    })),
  }
}

function toolCallOf(
  part: Extract<Part, { type: 'tool-call' }>,
  id: string,
): Record<string, unknown> {
  return { id, type: 'function', function: { name: part.name, arguments: part.arguments } }
}

export class ChatChunks implements AnswerRenderer {
  readonly #stream: EventStream
  readonly #head: string
  readonly #header: ChatHeader
  readonly #includeUsage: boolean
  #calls = 0

  constructor(stream: EventStream, header: ChatHeader, options: { includeUsage: boolean }) {
    this.#stream = stream
    this.#header = header
    this.#includeUsage = options.includeUsage
    const { id, created, model } = header
    // Everything that is the same in each chunk is written once.
    this.#head = JSON.stringify({ id, object: 'chat.completion.chunk', created, model }).slice(
      0,
      -1,
    )
  }

  begin(): void {
    this.#chunk({ role: 'assistant', content: '' }, { finish: null })
  }

  tokens(tokens: readonly Token[]): void {
    const logprobs = tokens.flatMap((token) =>
      token.logprob === undefined ? [] : [logprobEntry(token.logprob)],
    )
    this.#parts(
      tokens.flatMap((token) => token.parts),
      logprobs,
    )
  }

  finish(reason: FinishReason, parts: readonly Part[], usage: Usage): void {
    this.#parts(parts, [])
    this.#chunk({}, { finish: finishReasons[reason] })
    if (this.#includeUsage) {
      this.#stream.data(`${this.#head},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}`)
    }
    this.#stream.data('[DONE]')
  }

  fail(error: ApiError): void {
    this.#stream.data(JSON.stringify(openAiError(error)))
  }

  /** One chunk per kind of text; a token without text yet shows nothing but its logprob. */
  #parts(parts: readonly Part[], logprobs: readonly unknown[]): void {
    let content = ''
    let reasoning = ''
    for (const part of parts) {
      if (part.type === 'content') content += part.text
      else if (part.type === 'reasoning') reasoning += part.text
    }
    if (reasoning !== '') this.#chunk({ reasoning_content: reasoning, reasoning }, { finish: null })
    if (content !== '' || logprobs.length > 0) this.#chunk({ content }, { finish: null, logprobs })
    for (const part of parts) if (part.type === 'tool-call') this.#toolCall(part)
  }

  #toolCall(part: Extract<Part, { type: 'tool-call' }>): void {
    const index = this.#calls++
    const call = toolCallOf(part, `call_${this.#header.id.slice(-12)}_${index}`)
    this.#chunk({ tool_calls: [{ index, ...call }] }, { finish: null })
  }

  #chunk(
    delta: object,
    { finish, logprobs = [] }: { finish: string | null; logprobs?: readonly unknown[] },
  ): void {
    const probabilities =
      logprobs.length === 0 ? '' : `,"logprobs":${JSON.stringify({ content: logprobs })}`
    this.#stream.data(
      `${this.#head},"choices":[{"index":0,"delta":${JSON.stringify(delta)}${probabilities},"finish_reason":${JSON.stringify(finish)}}]}`,
    )
  }
}

export function chatCompletion(header: ChatHeader, answer: WholeAnswer): Record<string, unknown> {
  const calls = [...allParts(answer)].filter((part) => part.type === 'tool-call')
  const reasoning = joinText(answer, 'reasoning')
  const content = joinText(answer, 'content')
  const logprobs = answer.tokens.flatMap((token) =>
    token.logprob === undefined ? [] : [logprobEntry(token.logprob)],
  )
  const message = {
    role: 'assistant',
    content: calls.length > 0 && content === '' ? null : content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning, reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call, index) =>
            toolCallOf(call, `call_${header.id.slice(-12)}_${index}`),
          ),
        }),
  }
  return {
    id: header.id,
    object: 'chat.completion',
    created: header.created,
    model: header.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: logprobs.length === 0 ? null : { content: logprobs },
        finish_reason: finishReasons[answer.reason],
      },
    ],
    usage: usageOf(answer.usage),
  }
}
