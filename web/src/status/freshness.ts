// How old a thing is, in words, and whether it may still be shown as the present.

/** Older than this it is shown grey, as what it is: the past. */
export const oldAfterMs = 30_000
/** Younger than this is "just now": a figure that ticks every second would only be restless. */
const justNowMs = 5000

export function isOld(ageMs: number): boolean {
  return ageMs >= oldAfterMs
}

export function ageInWords(ageMs: number): string {
  if (ageMs < justNowMs) return 'just now'
  const seconds = Math.floor(ageMs / 1000)
  if (seconds < 60) return `${seconds} s ago`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ago`
  return `${Math.floor(hours / 24)} days ago`
}
