// What a machine of the cluster may ask another one to measure: data only. Whatever becomes an environment or a
// command line is made of it by the machine that is asked.
import { z } from 'zod'

const host = z.ipv4()
const port = z.int().min(1024).max(65_535)
const address = z.object({ host, port })
const rank = z.int().min(0).max(63)
const device = z.string().regex(/^[A-Za-z0-9_.-]{1,32}$/)
const cell = z.union([device, z.array(device).min(1).max(8), z.null()])

export const probeJob = z.union([
  z.object({ kind: z.literal('machine') }),
  z.object({ kind: z.literal('hop-serve'), host }),
  z.object({
    kind: z.literal('hop-dial'),
    host,
    port,
    secret: z.string().regex(/^[0-9a-f]{32}$/),
  }),
  z.object({
    kind: z.literal('world'),
    backend: z.literal('ring'),
    rank,
    hosts: z.array(address).min(2).max(64),
  }),
  z.object({
    kind: z.literal('world'),
    backend: z.literal('jaccl'),
    rank,
    shape: z.enum(['mesh', 'ring']),
    matrix: z.array(z.array(cell).max(64)).min(2).max(64),
    coordinator: address,
  }),
])
export type ProbeJob = z.infer<typeof probeJob>
export type WorldJob = Extract<ProbeJob, { kind: 'world' }>

/** Where a rank of a probe will listen: the address that faces that machine, or the one that is named. */
export const probePlace = z.object({ facing: z.string().min(1), address: host.nullable() })
export type ProbePlace = z.infer<typeof probePlace>
export const probeAddress = address

/** What a daemon tells whoever asked for a probe, line by line. */
export type ProbeNews<Report> =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'report'; readonly report: Report }
  | { readonly kind: 'failed'; readonly reason: string }
