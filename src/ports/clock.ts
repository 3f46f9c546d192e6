// Time as the loop sees it: one clock that never jumps, one that people read, and timers.

export type CancelTimer = () => void

export interface Clock {
  /** Monotonic. It may stand still while the machine sleeps, or count on: systems differ. */
  nowMs(): number
  /** The wall clock, for display alone: people and time servers set it by hours. */
  wallMs(): number
  /** How long the machine has slept since the program began, as far as it can tell. */
  sleptMs(): number
  after(ms: number, run: () => void): CancelTimer
  every(ms: number, run: () => void): CancelTimer
}
