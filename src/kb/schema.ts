// What the files of the knowledge base must contain. Everything past the reader may rely on it.
import { z } from 'zod'

export const statuses = ['stands', 'corrected', 'outdated', 'disputed'] as const
export const confidences = ['verified', 'high', 'medium', 'low', 'hypothetical'] as const
export const bases = [
  'measured',
  'read-in-source',
  'documentation',
  'paper',
  'reported',
  'deduced',
  'opinion',
  'hypothetical',
] as const

export type Status = (typeof statuses)[number]
export type Confidence = (typeof confidences)[number]

const id = z.int().positive().max(999_999)
const ids = z.array(id)
const line = z.string().trim().min(1)
const kebab = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case words joined by hyphens')
const date = z
  .string()
  .regex(
    /^20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$/,
    'must be YYYY, YYYY-MM or YYYY-MM-DD',
  )

/** The head of a finding's file; its text below is the evidence. */
export const findingHead = z
  .strictObject({
    id,
    claim: line.max(400),
    status: z.enum(statuses),
    confidence: z.enum(confidences),
    basis: z.enum(bases),
    /** When the claim was made, as exactly as is known. */
    date,
    /** When it was last compared with the other findings. */
    checked: date.optional(),
    tags: z.array(kebab).min(1),
    sources: z.array(line).min(1),
    supports: ids.default([]),
    contradicts: ids.default([]),
    supersedes: ids.default([]),
    see_also: ids.default([]),
    /** What the finding said before it was corrected. */
    earlier: line.optional(),
    /** Why it was corrected, is outdated or is disputed. */
    correction: line.optional(),
  })
  .superRefine((head, context) => {
    if (head.status === 'stands' && head.correction !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['correction'],
        message: 'a finding that stands has no correction; change its status or drop the line',
      })
    if (head.status !== 'stands' && head.correction === undefined)
      context.addIssue({
        code: 'custom',
        path: ['status'],
        message: `a finding that is ${head.status} must say why in "correction"`,
      })
  })

/** The head of a conflict's file; its text below is the reason. */
export const conflictHead = z.strictObject({
  name: kebab,
  title: line,
  /** The answer to work with. */
  use: line,
  /** The findings that carry that answer. */
  stands: ids.min(1),
  claims: z.array(z.strictObject({ id, says: line })).min(2),
})

/** The head of a topic's file; its text below has the sections. */
export const topicHead = z.strictObject({
  name: kebab,
  title: line,
  summary: line,
  /** A finding belongs to the topic when it has one of these tags; "*" takes them all. */
  tags: z.array(z.union([kebab, z.literal('*')])).min(1),
  related: z.array(kebab).default([]),
  figures: z.array(z.strictObject({ what: line, value: line, cites: ids.min(1) })).min(1),
})

/** Words that people use for the same thing. */
export const synonymsHead = z.strictObject({ groups: z.array(z.array(line).min(2)) })

export interface Relations {
  readonly supports: readonly number[]
  readonly contradicts: readonly number[]
  readonly supersedes: readonly number[]
  readonly seeAlso: readonly number[]
}

export interface Finding {
  readonly id: number
  readonly claim: string
  readonly status: Status
  readonly confidence: Confidence
  readonly basis: (typeof bases)[number]
  readonly date: string
  readonly checked?: string | undefined
  readonly tags: readonly string[]
  readonly sources: readonly string[]
  readonly earlier?: string | undefined
  readonly correction?: string | undefined
  readonly evidence: string
  readonly relations: Relations
}

export interface Conflict {
  readonly name: string
  readonly title: string
  readonly use: string
  readonly stands: readonly number[]
  readonly claims: readonly { readonly id: number; readonly says: string }[]
  readonly reason: string
}

export interface TopicQuestion {
  readonly question: string
  readonly answer: string
  readonly cites: readonly number[]
}

export interface Topic {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly related: readonly string[]
  readonly figures: readonly {
    readonly what: string
    readonly value: string
    readonly cites: readonly number[]
  }[]
  readonly know: string
  readonly pitfalls: readonly string[]
  readonly questions: readonly TopicQuestion[]
  /** Further sections, in the file's order, such as the areas of the whole subject. */
  readonly more: readonly { readonly heading: string; readonly text: string }[]
}

export interface Knowledge {
  readonly findings: readonly Finding[]
  readonly conflicts: readonly Conflict[]
  readonly topics: readonly Topic[]
  readonly synonyms: readonly (readonly string[])[]
}
