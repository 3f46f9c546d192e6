// The older completions' answers: text with probabilities in parallel lists.
import type { Token, Usage } from '../../core/serving/request.ts'
import type { Ending } from '../answers/run.ts'
import type { StreamRenderer } from '../answers/stream.ts'
import type { WholeAnswer, WholeRenderer } from '../answers/whole.ts'
import type { ApiError } from '../api-error.ts'
import type { EventStream } from '../event-stream.ts'
import type { ChatHeader } from './chat-completion.ts'
import { openAiError } from './error-shape.ts'
import { finishReasons, usageOf } from './usage.ts'

/** Parallel lists; `offset` is where the first of these tokens begins in the whole text. */
function logprobLists(tokens: readonly Token[], offset: number): object | null {
  const lists = {
    tokens: [] as string[],
    token_logprobs: [] as number[],
    top_logprobs: [] as Record<string, number>[],
    text_offset: [] as number[],
  }
  let at = offset
  for (const { logprob } of tokens) {
    if (logprob === undefined) continue
    lists.tokens.push(logprob.text)
    lists.token_logprobs.push(logprob.logprob)
    lists.top_logprobs.push(
      Object.fromEntries(logprob.top.map((other) => [other.text, other.logprob])),
    )
    lists.text_offset.push(at)
    at += logprob.text.length
  }
  return lists.tokens.length === 0 ? null : lists
}

export function completion(header: ChatHeader, echoes: readonly string[]): WholeRenderer {
  return {
    fail: openAiError,
    render(answers: readonly WholeAnswer[], usage: Usage) {
      const { id, created, model, system_fingerprint } = header
      return {
        id,
        object: 'text_completion',
        created,
        model,
        system_fingerprint,
        choices: answers.map(({ tokens, blocks, ending }, index) => ({
          text: (echoes[index] ?? '') + blocks.text('content'),
          index,
          logprobs: logprobLists(tokens, 0),
          finish_reason: finishReasons[ending.reason],
        })),
        usage: usageOf(usage),
      }
    },
  }
}

export class CompletionChunks implements StreamRenderer {
  readonly #stream: EventStream
  readonly #head: string
  readonly #echoes: readonly string[]
  readonly #includeUsage: boolean
  readonly #offsets: number[]

  constructor(
    stream: EventStream,
    header: ChatHeader,
    options: { echoes: readonly string[]; includeUsage: boolean },
  ) {
    this.#stream = stream
    this.#echoes = options.echoes
    this.#includeUsage = options.includeUsage
    this.#offsets = options.echoes.map(() => 0)
    const { id, created, model, system_fingerprint } = header
    const head = { id, object: 'text_completion', created, model, system_fingerprint }
    this.#head = JSON.stringify(head).slice(0, -1)
  }

  begin(): void {
    for (const [choice, echo] of this.#echoes.entries())
      if (echo !== '') this.#chunk(choice, echo, { logprobs: null, finish: null })
  }

  tokens(choice: number, tokens: readonly Token[]): void {
    let text = ''
    for (const { parts } of tokens)
      for (const part of parts) if (part.type === 'content') text += part.text
    const offset = this.#offsets[choice] ?? 0
    const logprobs = logprobLists(tokens, offset)
    for (const { logprob } of tokens)
      this.#offsets[choice] = (this.#offsets[choice] ?? 0) + (logprob?.text.length ?? 0)
    if (text !== '' || logprobs !== null) this.#chunk(choice, text, { logprobs, finish: null })
  }

  finish(choice: number, { reason, parts }: Ending): void {
    let text = ''
    for (const part of parts) if (part.type === 'content') text += part.text
    this.#chunk(choice, text, { logprobs: null, finish: finishReasons[reason] })
  }

  complete(usage: Usage): void {
    if (this.#includeUsage)
      this.#stream.data(`${this.#head},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}`)
    this.#stream.data('[DONE]')
  }

  fail(error: ApiError): void {
    this.#stream.data(JSON.stringify(openAiError(error)))
  }

  #chunk(
    choice: number,
    text: string,
    { logprobs, finish }: { logprobs: object | null; finish: string | null },
  ): void {
    const fields = { text, index: choice, logprobs, finish_reason: finish }
    this.#stream.data(`${this.#head},"choices":[${JSON.stringify(fields)}]}`)
  }
}
