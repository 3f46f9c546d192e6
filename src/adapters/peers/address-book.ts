// Where other machines may be found: what discovery saw, what people named, and where they last were.
import type { MachineId } from '../../core/ids.ts'

export interface DialTarget {
  readonly host: string
  readonly port: number
  /** Null for an address that a person gave: whoever answers says who it is. */
  readonly peer: MachineId | null
}

interface Entry extends DialTarget {
  failures: number
  nextMs: number
  seenMs: number
}

const backoffMsMin = 250
const backoffMsMax = 5000
const entriesMax = 2000

export class AddressBook {
  readonly #entries = new Map<string, Entry>()

  /** A sighting makes an address worth trying at once. */
  add(target: DialTarget, nowMs: number): void {
    const key = keyOf(target)
    const known = this.#entries.get(key)
    if (known !== undefined) {
      known.seenMs = nowMs
      return
    }
    if (this.#entries.size >= entriesMax) this.#dropOldest()
    this.#entries.set(key, { ...target, failures: 0, nextMs: nowMs, seenMs: nowMs })
  }

  /** Addresses that may be dialled now. */
  due(nowMs: number): readonly DialTarget[] {
    return [...this.#entries.values()].filter((entry) => entry.nextMs <= nowMs)
  }

  failed(target: DialTarget, nowMs: number): void {
    const entry = this.#entries.get(keyOf(target))
    if (entry === undefined) return
    entry.failures += 1
    entry.nextMs = nowMs + Math.min(backoffMsMax, backoffMsMin * 2 ** Math.min(entry.failures, 10))
  }

  /** It worked, or is being tried: not again before this time. */
  postpone(target: DialTarget, untilMs: number): void {
    const entry = this.#entries.get(keyOf(target))
    if (entry !== undefined) entry.nextMs = untilMs
  }

  succeeded(target: DialTarget): void {
    const entry = this.#entries.get(keyOf(target))
    if (entry !== undefined) entry.failures = 0
  }

  /** A link came back or a peer was lost: waiting out a backoff would only cost time. */
  retryNow(matches: (target: DialTarget) => boolean, nowMs: number): void {
    for (const entry of this.#entries.values()) {
      if (!matches(entry)) continue
      entry.failures = 0
      entry.nextMs = nowMs
    }
  }

  of(peer: MachineId): readonly DialTarget[] {
    return [...this.#entries.values()].filter((entry) => entry.peer === peer)
  }

  #dropOldest(): void {
    const oldest = [...this.#entries].sort(([, a], [, b]) => a.seenMs - b.seenMs)[0]
    if (oldest !== undefined) this.#entries.delete(oldest[0])
  }
}

function keyOf({ host, port, peer }: DialTarget): string {
  return `${host}|${port}|${peer ?? ''}`
}
