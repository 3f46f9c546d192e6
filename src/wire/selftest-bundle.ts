// The file that "bushel selftest --bundle" writes and "bushel fixtures import" reads.
import { z } from 'zod'
import { captureOutcome, connectResult, readOutcome, systemAddress } from './captures.ts'

/** Labels become folder names. */
const label = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/)

const recordedCommand = z.object({
  argv: z.array(z.string()).min(1).max(64),
  stdout: z.string(),
  outcome: captureOutcome,
})

const machine = z.object({
  label,
  platform: z.enum(['macos', 'linux']),
  observedAtMs: z.number(),
  self: z.object({ pid: z.number().int(), uid: z.number().int() }).nullable(),
  commands: z.array(recordedCommand).max(500),
  files: z.record(z.string(), readOutcome),
  folders: z.record(z.string(), z.array(z.string()).nullable()),
  connections: z.record(z.string(), connectResult),
  addresses: z.array(systemAddress),
})

/** A number that was measured, with what it is a measure of. */
export const measuredRow = z.object({
  what: z.string(),
  value: z.number(),
  unit: z.string(),
  machine: label,
  detail: z.string().default(''),
})

const stepOutcome = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('ran'),
    summary: z.string(),
    tookMs: z.number(),
    measured: z.array(measuredRow).default([]),
  }),
  z.object({ kind: z.literal('failed'), reason: z.string(), tookMs: z.number() }),
  z.object({ kind: z.literal('skipped'), reason: z.string() }),
])

export const selftestBundle = z.object({
  format: z.literal('bushel-selftest'),
  version: z.literal(1),
  bushel: z.string(),
  /** The day alone. */
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  machines: z.array(machine).min(1).max(64),
  steps: z.array(z.object({ id: z.string(), title: z.string(), outcome: stepOutcome })),
  /** What the doctor said, as lines. */
  diagnosis: z.array(z.string()),
})

export type SelftestBundle = z.infer<typeof selftestBundle>
export type BundleMachine = z.infer<typeof machine>
export type MeasuredRow = z.infer<typeof measuredRow>
export type StepOutcome = z.infer<typeof stepOutcome>
