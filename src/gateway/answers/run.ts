// Several generations that make one response: the choices of a chat, the prompts of a batch. They start a
// few at a time, their usage adds up, and the first failure ends them all.
import { limits } from '../../core/limits.ts'
import type {
  FinishReason,
  GenerationError,
  Part,
  Question,
  Token,
  Usage,
} from '../../core/serving/request.ts'
import type { GatewayServing } from '../context.ts'

export interface Ask {
  readonly question: Question
  /** Number of its prompt in the request: choices of one prompt are charged for it once. */
  readonly prompt: number
}

export interface Ending {
  readonly reason: FinishReason
  readonly parts: readonly Part[]
  readonly usage: Usage
}

/** Exactly one of completed and failed ends it, unless it is dropped. */
export interface AnswerListener {
  accepted(index: number, promptTokens: number, cachedTokens: number): void
  progressed(done: number, total: number): void
  token(index: number, token: Token): void
  finished(index: number, ending: Ending): void
  completed(usage: Usage): void
  failed(error: GenerationError): void
}

export interface AnswerOrder {
  readonly serving: GatewayServing
  /** The model, as the client called it. */
  readonly name: string
  readonly asks: readonly Ask[]
  /** What the client calls the answer. */
  readonly id?: string
  /** Idle time after which the model may go, when the client had something to say about it. */
  readonly keepAliveMs?: number | null
}

const nothing: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }

export class AnswerRun {
  readonly #order: AnswerOrder
  readonly #listener: AnswerListener
  readonly #cancels = new Map<number, () => void>()
  readonly #prompts = new Set<number>()
  #next = 0
  #finished = 0
  #usage = nothing
  #over = false

  constructor(order: AnswerOrder, listener: AnswerListener) {
    this.#order = order
    this.#listener = listener
    this.#startMore()
  }

  /** Nobody reads any more: frees what it holds and says nothing. */
  drop(): void {
    this.#over = true
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
  }

  fail(error: GenerationError): void {
    if (this.#over) return
    this.drop()
    this.#listener.failed(error)
  }

  #startMore(): void {
    const { asks } = this.#order
    while (
      !this.#over &&
      this.#next < asks.length &&
      this.#next - this.#finished < limits.choicesAtOnceMax
    ) {
      this.#next += 1
      this.#start(this.#next - 1, asks[this.#next - 1] as Ask)
    }
  }

  #start(index: number, { question, prompt }: Ask): void {
    const { serving, name, keepAliveMs, id: label } = this.#order
    const listener = this.#listener
    let ended = false
    const { cancel } = serving.generate(
      {
        name,
        question,
        ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
        ...(label === undefined ? {} : { label }),
      },
      {
        accepted: (promptTokens, cachedTokens) => {
          if (!this.#over) listener.accepted(index, promptTokens, cachedTokens)
        },
        progressed: (done, total) => listener.progressed(done, total),
        token: (token) => {
          if (!this.#over) listener.token(index, token)
        },
        finished: (reason, parts, usage) => {
          ended = true
          this.#cancels.delete(index)
          this.#finish(index, prompt, { reason, parts, usage })
        },
        failed: (error) => {
          ended = true
          this.#cancels.delete(index)
          this.fail(error)
        },
      },
    )
    if (this.#over) cancel()
    else if (!ended) this.#cancels.set(index, cancel)
  }

  #finish(index: number, prompt: number, ending: Ending): void {
    if (this.#over) return
    this.#finished += 1
    this.#usage = addUsage(this.#usage, ending.usage, !this.#prompts.has(prompt))
    this.#prompts.add(prompt)
    this.#listener.finished(index, ending)
    if (this.#finished === this.#order.asks.length) {
      this.#over = true
      this.#listener.completed(this.#usage)
    } else this.#startMore()
  }
}

function addUsage(sum: Usage, one: Usage, withPrompt: boolean): Usage {
  return {
    promptTokens: sum.promptTokens + (withPrompt ? one.promptTokens : 0),
    cachedTokens: sum.cachedTokens + (withPrompt ? one.cachedTokens : 0),
    completionTokens: sum.completionTokens + one.completionTokens,
    reasoningTokens: sum.reasoningTokens + one.reasoningTokens,
  }
}
