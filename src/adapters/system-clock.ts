// The machine's own clocks and timers.
import { uptime } from 'node:os'
import type { Clock } from '../ports/clock.ts'

/** Linux counts sleep in its uptime but not in its monotonic clock: what they drift apart by was slept. */
const awakeAtMs = uptime() * 1000 - performance.now()

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleptMs: () => Math.max(0, uptime() * 1000 - performance.now() - awakeAtMs),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  every(ms, run) {
    const timer = setInterval(run, ms)
    return () => clearInterval(timer)
  },
}
