// Recognises misspelt words: candidates share letter triples with the word, and the nearest by edit
// distance wins. People rarely get the first letter wrong, so it must agree: otherwise "bread" would be
// "read". A word that means nothing to us at all stays as it is.
import type { DatabaseSync } from 'node:sqlite'

/** Edits forgiven, by the length of the word: short words have too many neighbours. */
function editsAllowed(length: number): number {
  if (length < 4) return 0
  return length < 7 ? 1 : 2
}

const candidatesMax = 24
const lettersMax = 40

export function createSpelling(db: DatabaseSync): (word: string) => string | null {
  const similar = db.prepare(
    `select spelling.word as word, words.count as count from spelling
     join words on words.word = spelling.word
     where spelling match ? order by bm25(spelling) limit ${candidatesMax}`,
  )
  return (word) => {
    const letters = Array.from(word)
    const allowed = editsAllowed(letters.length)
    if (allowed === 0 || letters.length > lettersMax || !/^\p{L}+$/u.test(word)) return null
    const rows = similar.all(triples(letters)) as { word: string; count: number }[]
    const near = rows
      .map((row) => ({ ...row, edits: editDistance(word, row.word) }))
      .filter((row) => row.edits <= allowed && Array.from(row.word)[0] === letters[0])
      .sort((a, b) => a.edits - b.edits || b.count - a.count)
    return near[0]?.word ?? null
  }
}

/** The letter triples of a word, as a full-text query for any of them. */
function triples(letters: readonly string[]): string {
  const all = letters.slice(0, -2).map((_, at) => letters.slice(at, at + 3).join(''))
  return all.map((triple) => `"${triple}"`).join(' OR ')
}

/** Edits that turn one word into the other; two neighbouring letters swapped count as one. */
export function editDistance(from: string, to: string): number {
  const a = Array.from(from)
  const b = Array.from(to)
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min(replaced, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1)
      current.push(best)
    }
    before = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
