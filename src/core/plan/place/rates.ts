// The figures that a search compares: quick to compute, for every candidate.
import type { CollectiveRegime } from '../cost/links.ts'
import { type Terms, totalSeconds } from '../cost/terms.ts'
import {
  type Bench,
  type Group,
  aloneTerms,
  firstTokenTerms,
  loadedRate,
  typicalAnswerTokens,
} from './group.ts'

export interface Rates {
  readonly alone: Terms
  readonly firstToken: Terms
  readonly aloneRate: number
  readonly loadedRate: number
  readonly firstTokenSeconds: number
  /** Reading the prompt and writing a typical answer, one request. */
  readonly answerSeconds: number
}

/** `concurrency` is what reaches this group: a part of all requests when there are replicas. */
export function groupRates(
  bench: Bench,
  group: Group,
  regime: CollectiveRegime,
  concurrency: number = bench.concurrency,
): Rates {
  const alone = aloneTerms(bench, group, regime)
  const firstToken = firstTokenTerms(bench, group, regime)
  const aloneRate = 1 / totalSeconds(alone)
  const firstTokenSeconds = totalSeconds(firstToken)
  return {
    alone,
    firstToken,
    aloneRate,
    firstTokenSeconds,
    loadedRate: concurrency > 1 ? loadedRate(bench, group, concurrency, regime) : aloneRate,
    answerSeconds: firstTokenSeconds + (typicalAnswerTokens - 1) / aloneRate,
  }
}
