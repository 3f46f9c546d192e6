// The journal on disk: a snapshot with a format number, checked as a stranger's file would be.
import { z } from 'zod'
import type { MachineId } from '../core/ids.ts'
import type { Epoch } from '../core/cluster/record.ts'
import type { Register, Registers } from '../core/cluster/registers.ts'
import { machineSchema } from './id-schema.ts'
import { planted } from '../core/planted.ts'

export const journalFormat = 1

const machine = machineSchema
const counter = z.number().int().min(0)

export const epochSchema = z.object({ counter, machine })

export const registerSchema = z.object({
  version: z.object({ counter, machine, boot: z.string().max(64) }),
  /** Absent: a tombstone. */
  value: z.json().optional(),
})

export const registerEntrySchema = z.tuple([z.string().min(1).max(512), registerSchema])

const journalFile = z.object({
  format: z.number().int(),
  incarnation: counter,
  epochSeen: epochSchema,
  registers: z.array(registerEntrySchema),
})

export interface JournalContent {
  readonly incarnation: number
  readonly epochSeen: Epoch
  readonly registers: Registers
}

export type JournalParse =
  | { readonly kind: 'read'; readonly content: JournalContent }
  | { readonly kind: 'newer-format'; readonly format: number }
  | { readonly kind: 'unreadable'; readonly reason: string }

const emptyJournal: JournalContent = {
  incarnation: 0,
  epochSeen: { counter: 0, machine: 'nobody' as MachineId },
  registers: new Map(),
}

export function renderJournal(content: JournalContent): string {
  const registers = [...content.registers]
  return `${JSON.stringify({ format: journalFormat, ...content, registers }, null, 1)}\n`
}

export function parseJournal(text: string): JournalParse {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    if (planted.tornIsEmpty) return { kind: 'read', content: emptyJournal }
    return { kind: 'unreadable', reason: error instanceof Error ? error.message : String(error) }
  }
  const format = (json as { format?: unknown } | null)?.format
  if (typeof format === 'number' && format > journalFormat) return { kind: 'newer-format', format }
  const parsed = journalFile.safeParse(json)
  if (!parsed.success) return { kind: 'unreadable', reason: z.prettifyError(parsed.error) }
  const { incarnation, epochSeen, registers } = parsed.data
  return {
    kind: 'read',
    content: { incarnation, epochSeen, registers: new Map(registers.map(toRegister)) },
  }
}

export function toRegister([key, { version, value }]: z.infer<typeof registerEntrySchema>): [
  string,
  Register,
] {
  return [key, { version, value }]
}
