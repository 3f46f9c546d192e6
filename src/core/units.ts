// Sizes and durations as people write and read them. Inside, everything is bytes and milliseconds.

export const KiB = 1024
export const MiB: number = 1024 * KiB
export const GiB: number = 1024 * MiB
export const GB = 1_000_000_000

const byteUnits: Readonly<Record<string, number>> = {
  b: 1,
  k: 1000,
  kb: 1000,
  kib: KiB,
  m: 1_000_000,
  mb: 1_000_000,
  mib: MiB,
  g: GB,
  gb: GB,
  gib: GiB,
  t: 1000 * GB,
  tb: 1000 * GB,
  tib: 1024 * GiB,
}

/** Reads "4GB", "512 MiB" or "1000"; null when it is not a size. */
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text)
  if (match === null) return null
  const unit = match[2] === '' ? 1 : byteUnits[(match[2] ?? '').toLowerCase()]
  if (unit === undefined) return null
  const bytes = Number(match[1]) * unit
  return Number.isSafeInteger(Math.round(bytes)) ? Math.round(bytes) : null
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)} ${units[unit] ?? 'B'}`
}

/** Reads "10m", "90s", "250ms", "1h" or plain seconds; null when it is not a duration. */
export function parseDurationMs(text: string): number | null {
  const match = /^\s*(-?\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$/.exec(text)
  if (match === null) return null
  const factor = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? 's'] ?? 1000
  return Number(match[1]) * factor
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`
}
