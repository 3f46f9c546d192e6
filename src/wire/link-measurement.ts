// A link as it was measured, beside what it should be: between daemons, and to whoever asks.
import { z } from 'zod'

const amount = z.number().nonnegative()

export const linkMeasurement = z.object({
  class: z.enum(['rdma', 'thunderbolt-ip', 'ethernet', 'wifi']).nullable(),
  /** What the ports negotiated; null when nobody says. */
  nominalGbps: amount.nullable(),
  roundTripMicros: z.object({ median: amount, p99: amount, samples: z.number() }).nullable(),
  gbps: z.object({ slower: amount, forward: amount, backward: amount }).nullable(),
  expectedGbps: amount.nullable(),
  slow: z.boolean(),
  likelyCause: z.string().max(500).nullable(),
  next: z.string().max(500).nullable(),
  /** What the transport reaches on one machine, without any link. */
  transport: z.object({ gbps: amount.nullable(), roundTripMicros: amount.nullable() }),
  /** Why there is no figure. */
  error: z.string().max(1000).nullable(),
})

export type LinkMeasurement = z.infer<typeof linkMeasurement>

export const linkView = z.object({
  peer: z.string(),
  link: z.string(),
  localAddress: z.string(),
  remoteAddress: z.string(),
  heardAgoMs: z.number(),
  roundTripMs: z.number().nullable(),
  loss: z.number().nullable(),
  measured: linkMeasurement.extend({ ageMs: z.number() }).nullable(),
})

export type LinkView = z.infer<typeof linkView>
