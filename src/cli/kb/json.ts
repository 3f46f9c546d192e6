// What scripts and agents read: the knowledge base as JSON, flat and with the id first.
import type { FindingDetail, TopicDetail } from '../../kb/knowledge-base.ts'
import type { SearchAnswer } from '../../kb/search.ts'
import type { Finding } from '../../kb/types.ts'

export interface HitJson {
  readonly id: number
  readonly claim: string
  readonly status: Finding['status']
  readonly confidence: Finding['confidence']
  readonly basis: Finding['basis']
  readonly date: string
  readonly tags: readonly string[]
  readonly correction?: string
  readonly score: number
}

export function searchJson(answer: SearchAnswer): HitJson[] {
  return answer.hits.map(({ finding, score }) => {
    const { id, claim, status, confidence, basis, date, tags, correction } = finding
    const rounded = Math.round(Math.min(score, 1e6) * 1000) / 1000
    const head = { id, claim, status, confidence, basis, date, tags, score: rounded }
    return correction === undefined ? head : { ...head, correction }
  })
}

export interface TopicJson {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly know: string
  readonly figures: TopicDetail['topic']['figures']
  readonly pitfalls: readonly string[]
  readonly questions: TopicDetail['topic']['questions']
  readonly more: TopicDetail['topic']['more']
  readonly related: readonly string[]
  readonly findings: readonly Pick<Finding, 'id' | 'claim' | 'status' | 'confidence'>[]
}

export function topicJson({ topic, findings }: TopicDetail): TopicJson {
  const { name, title, summary, know, figures, pitfalls, questions, more, related } = topic
  return {
    name,
    title,
    summary,
    know,
    figures,
    pitfalls,
    questions,
    more,
    related,
    findings: findings.map(({ id, claim, status, confidence }) => ({
      id,
      claim,
      status,
      confidence,
    })),
  }
}

export type DetailJson = Omit<Finding, 'relations'> & Omit<FindingDetail, 'finding'>

export function detailJson({ finding, ...around }: FindingDetail): DetailJson {
  return { ...finding, ...around }
}
