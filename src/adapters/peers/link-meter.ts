// Latency and loss of one link, from beats that are echoed.

/** How many beats the loss is counted over: ten seconds' worth on each side of a hiccup. */
const windowBeats = 40
const smoothing = 0.2

export interface LinkFigures {
  readonly roundTripMs: number | null
  readonly roundTripMinMs: number | null
  /** Share of recent beats that were not echoed; null before there were enough. */
  readonly loss: number | null
}

export class LinkMeter {
  #sent = new Map<number, number>()
  #outcomes: boolean[] = []
  #smoothed: number | null = null
  #least: number | null = null

  sent(sequence: number, nowMs: number): void {
    this.#sent.set(sequence, nowMs)
    // The oldest beats that never came back are counted as lost.
    for (const [old, sentMs] of this.#sent) {
      if (nowMs - sentMs < 2000) break
      this.#sent.delete(old)
      this.#count(false)
    }
  }

  echoed(sequence: number, nowMs: number): void {
    const sentMs = this.#sent.get(sequence)
    if (sentMs === undefined) return
    this.#sent.delete(sequence)
    this.#count(true)
    const roundTrip = nowMs - sentMs
    this.#smoothed =
      this.#smoothed === null
        ? roundTrip
        : this.#smoothed + smoothing * (roundTrip - this.#smoothed)
    this.#least = Math.min(this.#least ?? roundTrip, roundTrip)
  }

  figures(): LinkFigures {
    const lost = this.#outcomes.filter((echoed) => !echoed).length
    return {
      roundTripMs: this.#smoothed,
      roundTripMinMs: this.#least,
      loss: this.#outcomes.length < 4 ? null : lost / this.#outcomes.length,
    }
  }

  #count(echoed: boolean): void {
    this.#outcomes.push(echoed)
    if (this.#outcomes.length > windowBeats) this.#outcomes.shift()
  }
}
