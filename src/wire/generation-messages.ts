// How a gateway talks to the machine of a group's head about one attempt. This is the token path
// between machines: it never touches the coordinator or the journal.
import { z } from 'zod'
import { logprobSchema, partSchema, pauseSchema, submitFrame } from './worker-frames.ts'

const count = z.number().int().min(0)

const usageSchema = z.object({
  promptTokens: count,
  cachedTokens: count,
  completionTokens: count,
  reasoningTokens: count,
})

const attemptMessages = [
  z.object({
    kind: z.literal('attempt-submit'),
    attempt: z.string(),
    group: z.string(),
    question: submitFrame.omit({ kind: true, attempt: true, replay: true }),
    replay: submitFrame.shape.replay,
    alone: z.boolean().exactOptional(),
  }),
  z.object({ kind: z.literal('attempt-cancel'), attempt: z.string() }),
  /** Some frames may have been lost with a link: send again from this position. */
  z.object({ kind: z.literal('attempt-resync'), attempt: z.string(), position: count }),
  z.object({
    kind: z.literal('attempt-accepted'),
    attempt: z.string(),
    promptTokens: count,
    cachedTokens: count,
  }),
  z.object({
    kind: z.literal('attempt-token'),
    attempt: z.string(),
    position: count,
    token: z.object({ id: count, parts: z.array(partSchema), logprob: logprobSchema.optional() }),
  }),
  z.object({
    kind: z.literal('attempt-progressed'),
    attempt: z.string(),
    done: count,
    total: count,
    /** Its group was put together again meanwhile; peers of earlier versions do not say so. */
    pause: pauseSchema.optional(),
  }),
  z.object({
    kind: z.literal('attempt-finished'),
    attempt: z.string(),
    reason: z.enum(['stop', 'length', 'tool-calls', 'cancelled']),
    parts: z.array(partSchema),
    usage: usageSchema,
    /** Position behind the last token: whoever has fewer has missed some. */
    end: count,
  }),
  z.object({
    kind: z.literal('attempt-refused'),
    attempt: z.string(),
    code: z.string(),
    message: z.string(),
  }),
  z.object({
    kind: z.literal('attempt-lost'),
    attempt: z.string(),
    cause: z.string(),
    crash: z.object({ alone: z.boolean() }).exactOptional(),
  }),
] as const

/** A rank's place in its group, and whose word it is. */
const relayed = {
  group: z.string(),
  /** Each formation of a group counts its words anew. */
  formation: count.exactOptional(),
  from: count,
  to: count,
}

const relayMessages = [
  /** Numbered for each pair of ranks, and repeated until it is acknowledged. */
  z.object({
    kind: z.literal('rank-relay'),
    ...relayed,
    number: count,
    body: z.record(z.string(), z.unknown()),
  }),
  z.object({ kind: z.literal('rank-relay-ack'), ...relayed, next: count }),
] as const

export const generationMessage = z.discriminatedUnion('kind', [
  ...attemptMessages,
  ...relayMessages,
])

export type GenerationMessage = z.infer<typeof generationMessage>
export type RelayMessage = z.infer<(typeof relayMessages)[number]>
export type AttemptMessage = z.infer<(typeof attemptMessages)[number]>
