// Virtual time: what is due next happens next, and equal times happen in the order they were asked for.

interface Due {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

/** Sixteen machines at work make a few thousand; more than this is a loop that feeds itself. */
const perSecondMax = 40_000

export class StormError extends Error {
  override readonly name = 'StormError'
  constructor(atMs: number) {
    super(`more than ${perSecondMax} things happened within the second before ${atMs} ms`)
  }
}

export class Schedule {
  #nowMs = 0
  #order = 0
  #happened = 0
  #secondMs = 0
  /** Things that have happened in this second. */
  #inSecond = 0
  readonly #heap: Due[] = []

  get nowMs(): number {
    return this.#nowMs
  }

  /** How many things have happened. */
  get happened(): number {
    return this.#happened
  }

  after(ms: number, run: () => void): void {
    this.at(this.#nowMs + ms, run)
  }

  at(atMs: number, run: () => void): void {
    this.#order += 1
    const due = { atMs: Math.max(atMs, this.#nowMs), order: this.#order, run }
    const heap = this.#heap
    let index = heap.length
    heap.push(due)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent] as Due
      if (!isBefore(due, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = due
  }

  /** Lets time pass until then. */
  runUntil(endMs: number): void {
    for (;;) {
      const next = this.#heap[0]
      if (next === undefined || next.atMs > endMs) break
      this.#removeFirst()
      this.#watchForStorm(next.atMs)
      this.#nowMs = next.atMs
      this.#happened += 1
      next.run()
    }
    this.#nowMs = endMs
  }

  #watchForStorm(atMs: number): void {
    if (atMs >= this.#secondMs + 1000) {
      this.#secondMs = atMs
      this.#inSecond = 0
    }
    this.#inSecond += 1
    if (this.#inSecond > perSecondMax) throw new StormError(atMs)
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      let child = index * 2 + 1
      if (child >= heap.length) break
      const right = heap[child + 1]
      if (right !== undefined && isBefore(right, heap[child] as Due)) child += 1
      const below = heap[child] as Due
      if (!isBefore(below, last)) break
      heap[index] = below
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
