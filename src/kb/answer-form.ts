// The form in which a model must answer: statements, each tied to one of the findings it was given. The form is
// enforced while the model writes, so no other id can be cited; what it says is judged here afterwards.
import { z } from 'zod'
import { checkCitations } from './check-citations.ts'
import { stopWords } from './stop-words.ts'
import type { Finding } from './types.ts'
import { wordsIn } from './words.ts'

const statementsMax = 3
const statementCharsMax = 280
/** "In Recovery, with rdma_ctl enable" is the shortest of statements. */
const wordsMin = 4
/** Of the telling words, how many must stand in what the model was given. */
const groundedShareMin = 0.5
/** Words of one root rarely differ before this many letters. */
const rootLetters = 5

export interface Statement {
  readonly finding: number
  readonly text: string
}

export type Fault = 'repeats itself' | 'says nothing' | 'names figures of its own' | 'strays'

export interface Judged {
  readonly kept: readonly Statement[]
  readonly faults: readonly Fault[]
  /** Ids named without having been given. */
  readonly removed: readonly number[]
}

/** As JSON schema for `response_format`: the ids are the only ones that exist for the model. */
export function answerSchema(ids: readonly number[]): Readonly<Record<string, unknown>> {
  return {
    type: 'object',
    properties: {
      known: { type: 'boolean' },
      statements: {
        type: 'array',
        maxItems: statementsMax,
        items: {
          type: 'object',
          properties: {
            finding: { type: 'integer', enum: ids },
            text: { type: 'string', maxLength: statementCharsMax },
          },
          required: ['finding', 'text'],
          additionalProperties: false,
        },
      },
    },
    required: ['known', 'statements'],
    additionalProperties: false,
  }
}

const reply = z.object({
  known: z.boolean(),
  statements: z.array(z.object({ finding: z.int(), text: z.string() })),
})

export type ModelAnswer = z.infer<typeof reply>

/** Null when the reply is not of the form: cut short, or by a model that was not held to it. */
export function readAnswer(text: string): ModelAnswer | null {
  try {
    return reply.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** Keeps the statements that rest on the finding they name; the rest is counted by its fault. */
export function judgeStatements(
  statements: readonly Statement[],
  given: { readonly question: string; readonly findings: readonly Finding[] },
): Judged {
  const allowed = new Set(given.findings.map(({ id }) => id))
  const kept: Statement[] = []
  const faults: Fault[] = []
  const removed = new Set<number>()
  const said = new Set<string>()
  for (const { finding: id, text } of statements) {
    const finding = given.findings.find((one) => one.id === id)
    const checked = checkCitations(text, allowed)
    for (const invented of checked.removed) removed.add(invented)
    if (finding === undefined) {
      removed.add(id)
      continue
    }
    const words = wordsIn(withoutCitations(checked.text))
    const key = words.join(' ')
    const fault = said.has(key)
      ? 'repeats itself'
      : faultOf(checked.text, { words, finding, ...given })
    said.add(key)
    if (fault === null) kept.push({ finding: id, text: checked.text })
    else faults.push(fault)
  }
  return { kept, faults, removed: [...removed] }
}

const withoutCitations = (text: string): string => text.replace(/\(?\bkb#\d+\)?/g, '')

function faultOf(
  text: string,
  about: {
    readonly words: readonly string[]
    readonly finding: Finding
    readonly question: string
    readonly findings: readonly Finding[]
  },
): Fault | null {
  const { words, finding, question } = about
  if (goesInCircles(words)) return 'repeats itself'
  const telling = words.filter((word) => !stopWords.has(word))
  const asked = new Set(wordsIn(question))
  if (new Set(words).size < wordsMin || telling.every((word) => asked.has(word)))
    return 'says nothing'
  const own = figuresIn(textOf(finding) + question)
  if ([...figuresIn(withoutCitations(text))].some((figure) => !own.has(figure)))
    return 'names figures of its own'
  const known = new Set(wordsIn(about.findings.map(textOf).join(' ') + ` ${question}`).map(rootOf))
  const grounded = telling.filter((word) => known.has(rootOf(word)))
  return grounded.length < telling.length * groundedShareMin ? 'strays' : null
}

const rootOf = (word: string): string => word.slice(0, rootLetters)

const textOf = ({ id, claim, evidence, correction, earlier }: Finding): string =>
  [id, claim, evidence, correction ?? '', earlier ?? ''].join(' ')

/** Numbers as written, thousands without their comma. */
function figuresIn(text: string): ReadonlySet<string> {
  const plain = text.replace(/(?<=\d),(?=\d{3}\b)/g, '')
  return new Set(Array.from(plain.matchAll(/\d+(?:\.\d+)?/g), ([figure]) => String(Number(figure))))
}

/** Small models fall into loops: the same few words, or the same three in a row again and again. */
function goesInCircles(words: readonly string[]): boolean {
  if (words.length < 8) return false
  if (new Set(words).size < words.length * 0.4) return true
  const runs = new Map<string, number>()
  for (let at = 0; at + 3 <= words.length; at++) {
    const run = words.slice(at, at + 3).join(' ')
    runs.set(run, (runs.get(run) ?? 0) + 1)
  }
  return Math.max(...runs.values()) >= 3
}
