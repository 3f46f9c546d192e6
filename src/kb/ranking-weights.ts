// What counts how much in a search. Set by looking at the tuning half of bench/kb/questions.toml.
import type { Confidence, Status } from './types.ts'

export interface RankingWeights {
  readonly columns: {
    readonly claim: number
    readonly tags: number
    readonly evidence: number
    /** What the finding said earlier, why it was corrected, where it comes from. */
    readonly history: number
    /** What topics and conflicts say of it. */
    readonly mentions: number
  }
  /** A synonym of ours against the word the person used. */
  readonly synonym: number
  /** A word of nearly every question, such as Mac. */
  readonly subject: number
  /** A word with which the claim begins: it is what the finding is about. */
  readonly claimStart: number
  /** How much of the score depends on covering all words, from 0 to 1. */
  readonly coverage: number
  /** A finding that answers a similar question of a topic, against the strongest finding by words. */
  readonly asked: number
  /** How alike two questions must be for that, from 0 to 1, and what each further citation loses. */
  readonly likenessMin: number
  readonly citeDecay: number
  /** What the strongest findings lend to those they are related to, and how many of them lend. */
  readonly neighbour: number
  readonly neighboursOf: number
  readonly status: Readonly<Record<Status, number>>
  readonly confidence: Readonly<Record<Confidence, number>>
}

export const rankingWeights: RankingWeights = {
  columns: { claim: 6, tags: 1, evidence: 1, history: 0.6, mentions: 1.5 },
  synonym: 0.8,
  subject: 0.3,
  claimStart: 1.8,
  coverage: 0.55,
  asked: 0.85,
  likenessMin: 0.55,
  citeDecay: 0.75,
  neighbour: 0.15,
  neighboursOf: 5,
  status: { stands: 1, corrected: 1, outdated: 0.9, disputed: 1 },
  confidence: { verified: 1, high: 1, medium: 1, low: 0.95, hypothetical: 0.85 },
}
