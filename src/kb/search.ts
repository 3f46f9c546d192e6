// Ranked full-text search over the findings.
import type { DatabaseSync } from 'node:sqlite'
import type { Confidence, Finding, Status } from './schema.ts'
import { phraseOf, wordsIn } from './words.ts'

export interface SearchOptions {
  readonly tags?: readonly string[]
  readonly statuses?: readonly Status[]
  readonly confidences?: readonly Confidence[]
  readonly limit?: number
}

export interface SearchHit {
  readonly finding: Finding
  readonly score: number
}

export interface SearchAnswer {
  readonly hits: readonly SearchHit[]
}

const hitsDefault = 10

export function createSearch(
  db: DatabaseSync,
): (question: string, options?: SearchOptions) => SearchAnswer {
  const scores = db.prepare(
    'select rowid as id, bm25(search) as score from search where search match ?',
  )
  const load = db.prepare('select json from findings where id = ?')
  return (question, options = {}) => {
    const total = new Map<number, number>()
    for (const word of new Set(wordsIn(question)))
      for (const row of scores.all(phraseOf(word)) as { id: number; score: number }[])
        total.set(row.id, (total.get(row.id) ?? 0) - row.score)
    const hits = [...total]
      .sort(([a, scoreA], [b, scoreB]) => scoreB - scoreA || a - b)
      .slice(0, options.limit ?? hitsDefault)
      .map(([id, score]) => {
        const { json } = load.get(id) as { json: string }
        return { finding: JSON.parse(json) as Finding, score }
      })
    return { hits }
  }
}
