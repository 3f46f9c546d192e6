// Questions that a topic already answers: when one resembles what is asked now, the findings its
// answer cites deserve a better place than their words alone would give them.
import type { DatabaseSync } from 'node:sqlite'
import type { Term } from './question-terms.ts'
import { subjectWords } from './stop-words.ts'

/** How strongly each finding is vouched for, from 0 to 1. */
export type Vouched = ReadonlyMap<number, number>

interface Likeness {
  readonly size: number
  readonly cites: readonly number[]
  shared: number
}

export function createAskedBefore(
  db: DatabaseSync,
  weights: { readonly likenessMin: number; readonly citeDecay: number; readonly synonym: number },
): (terms: readonly Term[]) => Vouched {
  const having = db.prepare('select rowid as id, size, cites from asked where asked match ?')

  return (all) => {
    const terms = all.filter((term) => !subjectWords.has(term.word))
    const likenesses = new Map<number, Likeness>()
    for (const term of terms) {
      const seen = new Set<number>()
      for (const { phrase, own } of term.alternatives)
        for (const row of having.all(phrase)) {
          const id = Number(row['id'])
          if (seen.has(id)) continue
          seen.add(id)
          const likeness = likenesses.get(id) ?? {
            size: Number(row['size']),
            cites: JSON.parse(String(row['cites'])) as number[],
            shared: 0,
          }
          likeness.shared += own ? 1 : weights.synonym
          likenesses.set(id, likeness)
        }
    }
    const vouched = new Map<number, number>()
    for (const { size, cites, shared } of likenesses.values()) {
      const likeness = (2 * shared) / (size + terms.length)
      if (likeness < weights.likenessMin) continue
      for (const [at, id] of cites.entries())
        vouched.set(id, Math.max(vouched.get(id) ?? 0, likeness * weights.citeDecay ** at))
    }
    return vouched
  }
}
