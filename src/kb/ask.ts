// Answers a question from the findings: retrieves, lets a model put the answer into words, and lets
// nothing through that does not rest on what was retrieved. Without a model it shows the findings.
import {
  type Fault,
  type Judged,
  answerSchema,
  judgeStatements,
  readAnswer,
} from './answer-form.ts'
import { citationOf } from './citations.ts'
import type { Finding } from './types.ts'
import type { SearchAnswer, SearchHit } from './search.ts'

export interface ModelMessage {
  readonly role: 'system' | 'user'
  readonly content: string
}

export type ModelReply =
  | { readonly kind: 'model-answered'; readonly text: string; readonly model: string }
  | { readonly kind: 'model-missing'; readonly reason: string }

/** Asks for a reply that keeps to a JSON schema. */
export type AskModel = (
  messages: readonly ModelMessage[],
  schema: Readonly<Record<string, unknown>>,
) => Promise<ModelReply>

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
      /** What was wrong with statements that are left out. */
      readonly dropped: readonly Fault[]
    }
  | { readonly kind: 'findings-shown'; readonly reason: string }
  | { readonly kind: 'not-known'; readonly reason: string }
)

/** As many as a small model can read and still answer. */
const findingsGivenMax = 5
/** Evidence may be a page; its beginning carries most. */
const evidenceCharsMax = 300

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
  const ids = findings.map(({ id }) => id)
  const reply = await askModel(messagesFor(question, findings), answerSchema(ids))
  const shown = (reason: string): AskAnswer => ({
    kind: 'findings-shown',
    question,
    findings,
    reason,
  })
  if (reply.kind === 'model-missing') return shown(reply.reason)
  const { model } = reply
  const said = readAnswer(reply.text)
  if (said === null) return shown(`${model} did not finish its answer, so it is not shown.`)
  const judged = judgeStatements(said.statements, { question, findings })
  if (!said.known && judged.kept.length === 0) {
    const reason = `${model} finds no answer in these findings.`
    return { kind: 'not-known', question, findings, reason }
  }
  if (judged.kept.length === 0) return shown(whyDropped(model, judged))
  return {
    kind: 'answered',
    question,
    findings,
    answer: judged.kept.map(({ finding, text }) => sentence(text, finding)).join(' '),
    model,
    cites: [...new Set(judged.kept.map(({ finding }) => finding))],
    removed: judged.removed,
    dropped: judged.faults,
  }
}

/** "In Recovery (kb#413).", with the citation before the full stop and only once. */
function sentence(text: string, finding: number): string {
  const plain = text.replace(/\s*[([]?\bkb#\d+[)\]]?/g, '').replace(/[\s.]+$/, '')
  return `${plain} (${citationOf(finding)}).`
}

function whyDropped(model: string, { faults, removed }: Judged): string {
  const [fault] = faults
  if (fault !== undefined) return `The answer of ${model} ${faultWords[fault]}, so it is not shown.`
  return removed.length > 0
    ? `The answer of ${model} cites nothing that it was given, so it is not shown.`
    : `${model} said nothing about these findings.`
}

const faultWords: Readonly<Record<Fault, string>> = {
  'repeats itself': 'repeats itself',
  'says nothing': 'says nothing',
  'names figures of its own': 'names figures that are in none of its findings',
  strays: 'strays from the findings',
}

/** Whether the question is about something the findings speak of, rather than sharing a word. */
function isAnswerable(hits: readonly SearchHit[]): boolean {
  // Set by the tuning questions against twenty questions about bread, dogs and the weather.
  return hits
    .slice(0, 5)
    .some(({ coverage, score }) => coverage >= 0.5 && score >= (coverage > 0.5 ? 2.5 : 6))
}

function messagesFor(question: string, findings: readonly Finding[]): ModelMessage[] {
  const system = [
    'You answer questions about running AI models on several Macs.',
    'Use only the findings you are given. Reply with JSON: "known" tells whether they answer the question;',
    '"statements" holds one to three short sentences that answer it, most important first, each with the',
    'number of the finding it rests on. Do not repeat yourself and name no figure that is not in the finding.',
    'A finding marked disputed or outdated must be called that.',
    'If the findings do not answer the question, "known" is false and "statements" is empty.',
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
    finding.evidence.slice(0, evidenceCharsMax),
    finding.correction === undefined ? '' : `Correction: ${finding.correction}`,
  ]
    .filter(Boolean)
    .join('\n')
}
