// An answer while it is being written: takes the stream's events, and shows them at the pace of drawing.
import type { ChatEvent } from '../api/chat-events.ts'
import type { ChatQuestion } from '../api/client.ts'
import { RequestFailed } from '../api/failure.ts'
import { type Answer, advanceAnswer, stopAnswer } from './answer.ts'

export interface AnswerPorts {
  /** See Api.ask(). */
  readonly ask: (
    question: ChatQuestion,
    report: (event: ChatEvent) => void,
    signal: AbortSignal,
  ) => Promise<void>
  readonly monotonicMs: () => number
  /** Runs soon, at the pace at which the page can be drawn; perhaps never while the page is hidden. */
  readonly onNextFrame: (run: () => void) => void
}

export class RunningAnswer {
  readonly #ports: AnswerPorts
  readonly #show: (answer: Answer) => void
  readonly #controller = new AbortController()
  readonly #startMs: number
  #answer: Answer
  #isShown = true

  constructor(ports: AnswerPorts, answer: Answer, show: (answer: Answer) => void) {
    this.#ports = ports
    this.#answer = answer
    this.#show = show
    this.#startMs = ports.monotonicMs()
  }

  /** Settles when the answer has ended, in whatever way. */
  async run(messages: ChatQuestion['messages']): Promise<void> {
    const { model } = this.#answer
    const report = (event: ChatEvent): void => {
      if (!this.#controller.signal.aborted)
        this.#change(advanceAnswer(this.#answer, event, this.#elapsedMs()))
    }
    try {
      await this.#ports.ask({ model, messages }, report, this.#controller.signal)
    } catch (error) {
      const failure =
        error instanceof RequestFailed ? error.failure : ({ kind: 'cut-off' } as const)
      report({ kind: 'answer-failed', failure })
    }
    this.flush()
  }

  stop(): void {
    this.#change(stopAnswer(this.#answer, this.#elapsedMs()))
    this.#controller.abort()
    this.flush()
  }

  /** Shows at once what the next frame would have shown. */
  flush(): void {
    if (this.#isShown) return
    this.#isShown = true
    this.#show(this.#answer)
  }

  /** Many tokens, one drawing. */
  #change(next: Answer): void {
    if (next === this.#answer) return
    this.#answer = next
    if (this.#isShown) this.#ports.onNextFrame(() => this.flush())
    this.#isShown = false
  }

  #elapsedMs(): number {
    return this.#ports.monotonicMs() - this.#startMs
  }
}
