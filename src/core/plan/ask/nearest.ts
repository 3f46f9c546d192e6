// "Did you mean": the known word that a mistyped one most resembles.

/** Edits to turn one word into another; a swap of neighbours counts once. */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a.charAt(i - 1) === b.charAt(j - 1) ? 0 : 1
      let best = Math.min(
        (row[j - 1] ?? 0) + 1,
        (rows[i - 1]?.[j] ?? 0) + 1,
        (rows[i - 1]?.[j - 1] ?? 0) + same,
      )
      if (
        i > 1 &&
        j > 1 &&
        a.charAt(i - 1) === b.charAt(j - 2) &&
        a.charAt(i - 2) === b.charAt(j - 1)
      )
        best = Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1)
      row.push(best)
    }
    rows.push(row)
  }
  return rows[a.length]?.[b.length] ?? 0
}

/** The nearest of `options`, or null when none is near enough to be meant. */
export function nearest(word: string, options: readonly string[]): string | null {
  const plain = word.toLowerCase()
  let best: string | null = null
  let bestDistance = Infinity
  for (const option of options) {
    const distance = editDistance(plain, option.toLowerCase())
    if (distance < bestDistance) {
      best = option
      bestDistance = distance
    }
  }
  return bestDistance <= Math.max(2, Math.floor(word.length / 3)) ? best : null
}
