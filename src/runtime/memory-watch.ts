// Whether ranks give their memory back. Drivers have been seen to keep what a killed process had wired; a machine
// where that happens takes no new rank until the memory is there again, and says so.
import { formatBytes } from '../core/units.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import type { RankEvents, RankLauncher, RankProcess } from '../ports/rank-launcher.ts'
import type { LoadFrame } from '../wire/worker-frames.ts'

export interface MemoryWatchPorts {
  readonly clock: Clock
  /** What a new process could get at this moment. */
  readonly availableBytes: () => number
  /** Why no rank should come here, or null when one may again. */
  readonly onHeld: (reason: string | null) => void
}

/** Systems give memory back in the course of seconds; less than this may be any other program's. */
const graceMs = 10_000
const lookEveryMs = 1_000
const heldBytesMin = 4 * 1024 ** 3

export class MemoryWatch implements RankLauncher {
  readonly #inner: RankLauncher
  readonly #ports: MemoryWatchPorts
  readonly #alive = new Set<RankProcess>()
  /** Before the first of the ranks that are here, and what all of them have used. */
  #beforeBytes = 0
  #usedBytes = 0
  #looking: CancelTimer | null = null
  #isHeld = false

  constructor(inner: RankLauncher, ports: MemoryWatchPorts) {
    this.#inner = inner
    this.#ports = ports
  }

  launch(load: LoadFrame, events: RankEvents): RankProcess {
    if (this.#alive.size === 0 && this.#looking === null) {
      this.#beforeBytes = this.#ports.availableBytes()
      this.#usedBytes = 0
    }
    this.#stopLooking()
    let peakBytes = 0
    const process = this.#inner.launch(load, {
      frame: (frame) => {
        if (frame.kind === 'ready') peakBytes = Math.max(peakBytes, frame.weightsBytes)
        if (frame.kind === 'stats') peakBytes = Math.max(peakBytes, frame.activeBytes)
        events.frame(frame)
      },
      exit: (cause, crashed) => {
        if (this.#alive.delete(process)) this.#ended(peakBytes)
        events.exit(cause, crashed)
      },
    })
    this.#alive.add(process)
    return process
  }

  #ended(peakBytes: number): void {
    this.#usedBytes += peakBytes
    // While others are here, nobody can tell whose memory it is.
    if (this.#alive.size > 0) return
    const { clock } = this.#ports
    const sinceMs = clock.nowMs()
    this.#stopLooking()
    this.#looking = clock.every(lookEveryMs, () => this.#look(clock.nowMs() - sinceMs))
  }

  #look(waitedMs: number): void {
    const missing = this.#beforeBytes - this.#ports.availableBytes()
    const isBack = missing < Math.max(heldBytesMin, this.#usedBytes / 2)
    if (isBack) {
      this.#stopLooking()
      if (this.#isHeld) this.#ports.onHeld(null)
      this.#isHeld = false
    } else if (waitedMs >= graceMs && !this.#isHeld) {
      this.#isHeld = true
      this.#ports.onHeld(
        `${formatBytes(missing)} of memory did not come back after the last rank ended; close what uses it, or restart this machine`,
      )
    }
  }

  #stopLooking(): void {
    this.#looking?.()
    this.#looking = null
  }
}
