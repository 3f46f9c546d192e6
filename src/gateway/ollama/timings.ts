// Where the time of an answer went, in Ollama's nanoseconds.
import type { Usage } from '../../core/serving/request.ts'

export class Timings {
  readonly #startMs = performance.now()
  #acceptedMs: number | null = null
  #firstMs: number | null = null

  accepted(): void {
    this.#acceptedMs ??= performance.now()
  }

  token(): void {
    this.#firstMs ??= performance.now()
  }

  /** Loading is all the time until the model took the request up, its queue included. */
  render(usage: Usage): Record<string, number> {
    const endMs = performance.now()
    const acceptedMs = this.#acceptedMs ?? this.#firstMs ?? endMs
    const firstMs = this.#firstMs ?? endMs
    return {
      total_duration: nanoseconds(endMs - this.#startMs),
      load_duration: nanoseconds(acceptedMs - this.#startMs),
      prompt_eval_count: usage.promptTokens,
      prompt_eval_duration: nanoseconds(firstMs - acceptedMs),
      eval_count: usage.completionTokens,
      eval_duration: nanoseconds(endMs - firstMs),
    }
  }
}

export function nanoseconds(ms: number): number {
  return Math.round(Math.max(0, ms) * 1e6)
}
