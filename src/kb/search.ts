// Ranked full-text search over the findings. BM25 is additive over words, so each word is looked up
// alone and weighed here: a synonym counts less than the word itself, the word a claim begins with
// counts more, and a finding that covers the whole question wins.
import type { DatabaseSync } from 'node:sqlite'
import { createAskedBefore } from './asked-before.ts'
import { idAskedFor } from './citations.ts'
import { type Term, createQuestionReader } from './question-terms.ts'
import { type RankingWeights, rankingWeights } from './ranking-weights.ts'
import type { Confidence, Finding, Status } from './types.ts'
import { subjectWords } from './stop-words.ts'

export interface SearchOptions {
  /** A finding must have all of these. */
  readonly tags?: readonly string[]
  /** It must have one of these. */
  readonly statuses?: readonly Status[]
  readonly confidences?: readonly Confidence[]
  readonly limit?: number
}

export interface SearchHit {
  readonly finding: Finding
  readonly score: number
  /** The share of the question's telling words that the finding has, from 0 to 1. */
  readonly coverage: number
}

export interface SearchAnswer {
  readonly hits: readonly SearchHit[]
  /** Misspelt words and what they were taken for. */
  readonly readAs: Readonly<Record<string, string>>
  /** Whether the question was too long to be looked at whole. */
  readonly cut: boolean
}

export type Search = (question: string, options?: SearchOptions) => SearchAnswer

type Scores = ReadonlyMap<number, number>

const hitsDefault = 10

export function createSearch(db: DatabaseSync, weights: RankingWeights = rankingWeights): Search {
  const readQuestion = createQuestionReader(db)
  const askedBefore = createAskedBefore(db, weights)
  const findings = loadFindings(db)
  const neighbours = neighboursIn(findings.values())
  const { claim, tags, evidence, history, mentions } = weights.columns
  const lookUp = db.prepare(
    `select rowid as id, -bm25(search, ${claim}, ${tags}, ${evidence}, ${history}, ${mentions}) as score
     from search where search match ?`,
  )
  const scoresOf = (match: string): Scores =>
    new Map(lookUp.all(match).map((row) => [Number(row['id']), Number(row['score'])]))

  /** A word scores by its best form in each finding. */
  function scoresOfTerm(term: Term): Scores {
    const scores = new Map<number, number>()
    for (const { phrase, own } of term.alternatives)
      for (const [id, score] of scoresOf(phrase)) {
        const weighed = own ? score : score * weights.synonym
        scores.set(id, Math.max(scores.get(id) ?? 0, weighed))
      }
    for (const id of scoresOf(`claim : ^ ${term.phrase}`).keys())
      scores.set(id, (scores.get(id) ?? 0) * weights.claimStart)
    return scores
  }

  /** The score of each finding by the words of the question, and how many of them it has. */
  function scoreByWords(terms: readonly Term[]): { score: Scores; covered: Scores } {
    const score = new Map<number, number>()
    const covered = new Map<number, number>()
    for (const term of terms) {
      const scores = scoresOfTerm(term)
      addTo(score, scores, subjectWords.has(term.word) ? weights.subject : 1)
      for (const id of scores.keys()) covered.set(id, (covered.get(id) ?? 0) + 1)
    }
    const strongest = Math.max(0, ...score.values())
    addTo(score, askedBefore(terms), strongest * weights.asked)
    return { score, covered }
  }

  /** The strongest findings lend some of their score to those they are related to. */
  function lend(score: Map<number, number>): void {
    const strongest = [...score].sort(([a, x], [b, y]) => y - x || a - b)
    for (const [id, value] of strongest.slice(0, weights.neighboursOf))
      for (const near of neighbours.get(id) ?? [])
        score.set(near, (score.get(near) ?? 0) + value * weights.neighbour)
  }

  return (question, options = {}) => {
    const { terms, readAs, cut } = readQuestion(question)
    const { score, covered } = scoreByWords(terms)
    const coverageOf = (id: number): number => (covered.get(id) ?? 0) / terms.length
    const weighed = new Map<number, number>()
    for (const [id, value] of score) {
      const finding = findings.get(id)
      if (finding === undefined) continue
      const share = 1 - weights.coverage + weights.coverage * coverageOf(id)
      const trust = weights.status[finding.status] * weights.confidence[finding.confidence]
      weighed.set(id, value * share * trust)
    }
    lend(weighed)
    const named = idAskedFor(question)
    if (named !== null && findings.has(named)) weighed.set(named, Number.MAX_VALUE)
    const hits = [...weighed].flatMap(([id, value]): SearchHit[] => {
      const finding = findings.get(id)
      if (finding === undefined || !passes(finding, options)) return []
      return [{ finding, score: value, coverage: id === named ? 1 : coverageOf(id) }]
    })
    hits.sort((a, b) => b.score - a.score || a.finding.id - b.finding.id)
    return { hits: hits.slice(0, options.limit ?? hitsDefault), readAs, cut }
  }
}

function loadFindings(db: DatabaseSync): ReadonlyMap<number, Finding> {
  const rows = db.prepare('select id, json from findings').all()
  return new Map(rows.map((row) => [Number(row['id']), JSON.parse(String(row['json'])) as Finding]))
}

/** Which findings are related to each, whichever of the two says so. */
function neighboursIn(findings: Iterable<Finding>): ReadonlyMap<number, ReadonlySet<number>> {
  const neighbours = new Map<number, Set<number>>()
  const link = (from: number, to: number): void =>
    void neighbours.set(from, (neighbours.get(from) ?? new Set()).add(to))
  for (const { id, relations } of findings)
    for (const other of Object.values(relations).flat() as number[]) {
      link(id, other)
      link(other, id)
    }
  return neighbours
}

function addTo(sum: Map<number, number>, scores: Scores, weight: number): void {
  for (const [id, value] of scores) sum.set(id, (sum.get(id) ?? 0) + value * weight)
}

function passes(finding: Finding, options: SearchOptions): boolean {
  const { tags = [], statuses = [], confidences = [] } = options
  return (
    tags.every((tag) => finding.tags.includes(tag)) &&
    (statuses.length === 0 || statuses.includes(finding.status)) &&
    (confidences.length === 0 || confidences.includes(finding.confidence))
  )
}
