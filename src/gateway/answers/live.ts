// The answers this gateway is giving now, by the id their reader knows, so that they can be cancelled.
import type { GenerationError } from '../../core/serving/request.ts'

type Fail = (error: GenerationError) => void

export class LiveAnswers {
  readonly #fails = new Map<string, Fail>()

  add(id: string, fail: Fail): void {
    this.#fails.set(id, fail)
  }

  remove(id: string): void {
    this.#fails.delete(id)
  }

  /** False when no such answer is being given here. */
  cancel(id: string): boolean {
    const fail = this.#fails.get(id)
    if (fail === undefined) return false
    this.#fails.delete(id)
    fail({ code: 'cancelled', message: `${id} was cancelled` })
    return true
  }

  get count(): number {
    return this.#fails.size
  }
}
