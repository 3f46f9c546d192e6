// What the files of the knowledge base must contain. Everything past the reader may rely on it.
import { z } from 'zod'
import { bases, confidences, statuses } from './types.ts'

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
