// pmset -g therm: three notes when all is well, and little more on Apple silicon.
import { type Fact, known, unknown } from '../../core/machine-facts/fact.ts'
import type { PartialTelemetry, Reading } from '../../core/telemetry/telemetry.ts'
import { wholeLines } from '../probers/text.ts'

export const thermalCommand = ['pmset', '-g', 'therm'] as const

export function parseThermalLimits(text: string, nowMs: number): PartialTelemetry {
  const limits = wholeLines(text).flatMap((line) => {
    const match = /^\s*CPU_(?:Speed|Scheduler)_Limit\s*=\s*(\d+)$/.exec(line)
    return match === null ? [] : [Number(match[1])]
  })
  const speed: Fact<Reading<number>> =
    limits.length === 0
      ? unknown('not-printed', 'pmset has recorded no limit')
      : known({ value: Math.min(...limits), atMs: nowMs, source: 'pmset' })
  return { speedLimitPercent: speed }
}
