// A clock that stands still until it is moved.
import type { Clock } from '../../src/ports/clock.ts'

export class HandClock implements Clock {
  #nowMs = 0
  #timers: { dueMs: number; readonly everyMs: number | null; readonly run: () => void }[] = []

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#nowMs
  }

  sleptMs(): number {
    return 0
  }

  after(ms: number, run: () => void): () => void {
    return this.#set(ms, null, run)
  }

  every(ms: number, run: () => void): () => void {
    return this.#set(ms, ms, run)
  }

  pass(ms: number): void {
    const endMs = this.#nowMs + ms
    for (;;) {
      const next = this.#timers
        .filter(({ dueMs }) => dueMs <= endMs)
        .sort((one, other) => one.dueMs - other.dueMs)[0]
      if (next === undefined) break
      this.#nowMs = next.dueMs
      if (next.everyMs === null) this.#timers = this.#timers.filter((timer) => timer !== next)
      else next.dueMs += next.everyMs
      next.run()
    }
    this.#nowMs = endMs
  }

  #set(ms: number, everyMs: number | null, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + ms, everyMs, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }
}
