// Answers a question from the findings: retrieves, lets a model put the answer into words, and lets
// nothing through that does not rest on what was retrieved. Without a model it shows the findings.
import { checkCitations } from './check-citations.ts'
import { citationOf } from './citations.ts'
import type { Finding } from './types.ts'
import { wordsIn } from './words.ts'
import type { SearchAnswer, SearchHit } from './search.ts'

export interface ModelMessage {
  readonly role: 'system' | 'user'
  readonly content: string
}

export type ModelReply =
  | { readonly kind: 'model-answered'; readonly text: string; readonly model: string }
  | { readonly kind: 'model-missing'; readonly reason: string }

export type AskModel = (messages: readonly ModelMessage[]) => Promise<ModelReply>

export type AskAnswer = {
  readonly question: string
  /** What was retrieved; an answer cites nothing else. */
  readonly findings: readonly Finding[]
} & (
  | {
      readonly kind: 'answered'
      readonly answer: string
      readonly model: string
      readonly cites: readonly number[]
      /** Ids that the model named without having been given them; they were taken out. */
      readonly removed: readonly number[]
    }
  | { readonly kind: 'findings-shown'; readonly reason: string }
  | { readonly kind: 'not-known'; readonly reason: string }
)

/** As many as a small model can read and still answer. */
const findingsGivenMax = 6
/** "In Recovery, with rdma_ctl enable" is the shortest of answers. */
const answerWordsMin = 4

export async function askKnowledge(
  search: (question: string) => SearchAnswer,
  question: string,
  askModel: AskModel,
): Promise<AskAnswer> {
  const hits = search(question).hits.slice(0, findingsGivenMax)
  const findings = hits.map((hit) => hit.finding)
  if (!isAnswerable(hits)) {
    const reason = 'The findings say nothing about this.'
    return { kind: 'not-known', question, findings, reason }
  }
  const reply = await askModel(messagesFor(question, findings))
  if (reply.kind === 'model-missing')
    return { kind: 'findings-shown', question, findings, reason: reply.reason }
  const { text, cites, removed } = checkCitations(reply.text, new Set(findings.map(({ id }) => id)))
  const shown = (reason: string): AskAnswer => ({
    kind: 'findings-shown',
    question,
    findings,
    reason,
  })
  if (cites.length === 0 && admitsNotKnowing(reply.text)) {
    const reason = `${reply.model} finds no answer in these findings.`
    return { kind: 'not-known', question, findings, reason }
  }
  if (cites.length === 0)
    return shown(
      `${reply.model} gave an answer that rests on none of the findings, so it is not shown.`,
    )
  if (!saysSomething(text))
    return shown(`${reply.model} cited findings without saying anything about them.`)
  return { kind: 'answered', question, findings, answer: text, model: reply.model, cites, removed }
}

/** Whether the question is about something the findings speak of, rather than sharing a word. */
function isAnswerable(hits: readonly SearchHit[]): boolean {
  // Set by the tuning questions against twenty questions about bread, dogs and the weather.
  return hits
    .slice(0, 5)
    .some(({ coverage, score }) => coverage >= 0.5 && score >= (coverage > 0.5 ? 2.5 : 6))
}

function admitsNotKnowing(text: string): boolean {
  return /\b(do not|don't|cannot|can't) (know|answer|say)\b|\bnot (known|stated|mentioned)\b/i.test(
    text,
  )
}

/** Small models fall into repeating a citation; that is not an answer. */
function saysSomething(text: string): boolean {
  const sentences = text
    .split(/\n+|(?<=[.!?])\s+/)
    .map((sentence) => wordsIn(sentence.replace(/\(?\bkb#\d+\)?/g, '')).join(' '))
    .filter((sentence) => sentence !== '')
  const different = new Set(sentences)
  const words = new Set([...different].flatMap((sentence) => sentence.split(' ')))
  return words.size >= answerWordsMin && different.size * 2 > sentences.length
}

function messagesFor(question: string, findings: readonly Finding[]): ModelMessage[] {
  const system = [
    'You answer questions about running AI models on several Macs.',
    'Use only the findings you are given. After each statement cite the finding it rests on,',
    `written like (${citationOf(findings[0]?.id ?? 0)}). Cite no other numbers.`,
    'A finding marked disputed or outdated must be called that.',
    'If the findings do not answer the question, reply only: I do not know.',
    'Answer in a few plain sentences.',
  ].join(' ')
  const given = findings.map(describe).join('\n\n')
  return [
    { role: 'system', content: system },
    { role: 'user', content: `Findings:\n\n${given}\n\nQuestion: ${question.slice(0, 2_000)}` },
  ]
}

function describe(finding: Finding): string {
  return [
    `${citationOf(finding.id)} (${finding.status}, confidence ${finding.confidence}): ${finding.claim}.`,
    finding.evidence,
    finding.correction === undefined ? '' : `Correction: ${finding.correction}`,
  ]
    .filter(Boolean)
    .join('\n')
}
