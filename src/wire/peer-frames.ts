// What travels in a frame between two daemons: first a hello from each side, then whatever the purpose allows.
import { z } from 'zod'

export const peerProtocol = 1
/** Older peers that this version still understands. */
export const peerProtocolOldest = 1

export const helloFrame = z.object({
  kind: z.literal('hello'),
  protocol: z.number().int().min(1),
  purpose: z.enum(['control', 'bulk', 'join']),
  name: z.string().min(1).max(63),
  version: z.string().max(64),
  boot: z.string().max(64),
  incarnation: z.number().int().min(0),
  /** Port on which the sender accepts peers: an accepted socket does not show it. */
  port: z.number().int().min(1).max(65535),
  /** The sender's network interface under this connection: both names together are the link. */
  link: z.string().max(64),
})

/** The last frame before a connection is closed on purpose, so that both sides can say why. */
export const refusedFrame = z.object({
  kind: z.literal('refused'),
  code: z.string().max(64),
  reason: z.string().max(1000),
})

export const controlFrame = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('beat'), sequence: z.number().int(), beat: z.unknown() }),
  z.object({ kind: z.literal('echo'), sequence: z.number().int() }),
  z.object({ kind: z.literal('cluster'), message: z.unknown() }),
  z.object({ kind: z.literal('generation'), message: z.unknown() }),
  refusedFrame,
])

export const joinFrame = z.discriminatedUnion('kind', [
  /** With a code: proof that the joiner knows the invitation's secret, bound to this very connection. */
  z.object({
    kind: z.literal('join-code'),
    invitation: z.string().max(64),
    proof: z.string().max(128),
  }),
  /** Without: a person on the other side compares four words and approves. */
  z.object({ kind: z.literal('join-ask') }),
  z.object({ kind: z.literal('join-waiting') }),
  z.object({ kind: z.literal('welcome'), entries: z.array(z.unknown()) }),
  refusedFrame,
])

export type Hello = z.infer<typeof helloFrame>
export type JoinFrame = z.infer<typeof joinFrame>
