// Few numbers, told honestly: the median, and everything that was measured.

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Tokens a second between the first and the last. */
export function decodeRate(timesSeconds: readonly number[]): number {
  const first = timesSeconds[0] ?? Number.NaN
  const last = timesSeconds.at(-1) ?? Number.NaN
  return (timesSeconds.length - 1) / (last - first)
}

export function shown(values: readonly number[], digits = 2): string {
  return values.map((value) => value.toFixed(digits)).join(' ')
}

export interface Verdict {
  readonly name: string
  readonly value: number
  readonly limit: string
  readonly ok: boolean
  readonly all: readonly number[]
  readonly unit: string
}

export function verdict(
  name: string,
  about: { value: number; atLeast?: number; atMost?: number; all: readonly number[]; unit: string },
): Verdict {
  const { value, atLeast, atMost, all, unit } = about
  const ok =
    (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost)
  const limit = atLeast === undefined ? `≤ ${atMost ?? ''}` : `≥ ${atLeast}`
  return { name, value, limit, ok, all, unit }
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, value, limit, ok, unit, all }) => [
    ok ? 'ok  ' : 'MISS',
    name.padEnd(58),
    `${value.toFixed(3)} ${unit}`.padEnd(16),
    limit.padEnd(9),
    `[${shown(all, 2)}]`,
  ])
  return rows.map((row) => row.join(' ')).join('\n')
}
