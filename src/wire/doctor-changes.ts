// The record of what the doctor has changed on this machine and how each change is taken back.
import { z } from 'zod'

const command = z.object({ argv: z.array(z.string()).min(1), admin: z.boolean() })

export const doctorChange = z.object({
  id: z.string(),
  atMs: z.number(),
  check: z.string(),
  summary: z.string(),
  commands: z.array(command),
  undo: z.array(command),
  lasting: z.string(),
  /** "begun" stays when we were interrupted: it may or may not have happened, and is undone all the same. */
  state: z.enum(['begun', 'done', 'failed', 'undone']),
})

export const doctorChanges = z.object({ version: z.literal(1), changes: z.array(doctorChange) })

export type DoctorChange = z.infer<typeof doctorChange>
