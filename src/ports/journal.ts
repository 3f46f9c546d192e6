// What must survive a crash: desired state and the highest epoch seen.
import type { Epoch } from '../core/cluster/record.ts'
import type { Registers } from '../core/cluster/registers.ts'

export interface JournalSnapshot {
  readonly registers: Registers
  readonly epochSeen: Epoch
  readonly incarnation: number
}

export interface Journal {
  /** Calls back when the snapshot would survive a power cut, or with why it would not. */
  save(snapshot: JournalSnapshot, done: (error: Error | null) => void): void
}
