// Time as the loop sees it: one clock that never jumps, one that people read, and timers.

export type CancelTimer = () => void

export interface Clock {
  /** Monotonic; stands still while the machine sleeps. */
  nowMs(): number
  /** The wall clock, for display and for noticing sleep. */
  wallMs(): number
  after(ms: number, run: () => void): CancelTimer
  every(ms: number, run: () => void): CancelTimer
}
