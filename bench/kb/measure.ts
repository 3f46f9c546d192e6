// The measures of retrieval over a fixed set of questions, shared by the benchmark and the test.
import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { z } from 'zod'

const halves = ['tuning', 'held-out'] as const
export type Half = (typeof halves)[number]

const questionFile = z.strictObject({
  questions: z.array(
    z.strictObject({
      ask: z.string().min(1),
      right: z.array(z.int()).min(1).max(5),
      half: z.enum(halves),
      from: z.string(),
    }),
  ),
})

export type Question = z.infer<typeof questionFile>['questions'][number]

export interface Measured {
  readonly count: number
  /** The share of all right findings that are among the first five, averaged over questions. */
  readonly recallAt5: number
  /** The share of questions with at least one right finding among the first five. */
  readonly hitAt5: number
  /** One over the rank of the first right finding, averaged over questions; 0 when not found. */
  readonly meanReciprocalRank: number
  readonly misses: readonly {
    readonly ask: string
    readonly right: readonly number[]
    readonly found: readonly number[]
  }[]
}

export function readQuestions(file: string): Question[] {
  return questionFile.parse(parse(readFileSync(file, 'utf8'))).questions
}

export function measureRetrieval(
  questions: readonly Question[],
  half: Half,
  search: (ask: string) => readonly number[],
): Measured {
  const asked = questions.filter((question) => question.half === half)
  const results = asked.map(({ ask, right }) => {
    const found = search(ask)
    const inFive = right.filter((id) => found.slice(0, 5).includes(id)).length
    const rank = found.findIndex((id) => right.includes(id)) + 1
    return { ask, right, found, recall: inFive / right.length, hit: inFive > 0 ? 1 : 0, rank }
  })
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  return {
    count: asked.length,
    recallAt5: mean(results.map(({ recall }) => recall)),
    hitAt5: mean(results.map(({ hit }) => hit)),
    meanReciprocalRank: mean(results.map(({ rank }) => (rank === 0 ? 0 : 1 / rank))),
    misses: results
      .filter(({ recall, rank }) => recall < 1 || rank !== 1)
      .map(({ ask, right, found }) => ({ ask, right, found })),
  }
}
