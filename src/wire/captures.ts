// The description that lies beside the captures of one machine: what the plain files cannot say, such
// as a tool that was missing or hung, files that were read, and where the captures come from.
import { z } from 'zod'

const exited = z.object({
  kind: z.literal('exited'),
  exitCode: z.number().int(),
  stderr: z.string().default(''),
})

export const captureOutcome = z.discriminatedUnion('kind', [
  exited,
  z.object({ kind: z.literal('timed-out'), afterMs: z.number() }),
  z.object({ kind: z.literal('missing') }),
])

export const readOutcome = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), text: z.string() }),
  z.object({ kind: z.literal('missing') }),
  z.object({ kind: z.literal('refused'), code: z.string() }),
])

export const connectResult = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('connected') }),
  z.object({ kind: z.literal('failed'), code: z.string() }),
])

export const systemAddress = z.object({
  interface: z.string(),
  family: z.enum(['ipv4', 'ipv6']),
  address: z.string(),
  prefixLength: z.number().int(),
  hardwareAddress: z.string(),
})

/** How far a capture can be trusted. */
export const captureClass = z.enum(['real', 'real-trimmed', 'docs', 'model', 'reported'])

export const machineDescription = z.object({
  platform: z.enum(['macos', 'linux']),
  name: z.string().optional(),
  observedAtMs: z.number().optional(),
  self: z.object({ pid: z.number().int(), uid: z.number().int() }).optional(),
  provenance: z
    .object({ class: captureClass, source: z.string(), note: z.string().optional() })
    .optional(),
  /** By capture name, for commands that did not simply print and end well. */
  outcomes: z.record(z.string(), captureOutcome).default({}),
  files: z.record(z.string(), readOutcome).default({}),
  folders: z.record(z.string(), z.array(z.string()).nullable()).default({}),
  connections: z.record(z.string(), connectResult).default({}),
  addresses: z.array(systemAddress).default([]),
})

export type MachineDescription = z.infer<typeof machineDescription>
