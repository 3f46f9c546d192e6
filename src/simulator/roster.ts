// Who belongs to the simulated cluster: the roster everybody starts with, and coming back after a removal.
import { type RosterEntry, registerKeys } from '../core/cluster/desired.ts'
import type { Register } from '../core/cluster/registers.ts'
import type { JsonValue } from '../core/json.ts'
import type { JournalSnapshot } from '../ports/journal.ts'
import type { MachineSpec, Scenario } from './scenario.ts'

export function rosterEntry({ id, name }: MachineSpec): JsonValue {
  const entry: RosterEntry = { machine: id, name, publicKey: '', addresses: [] }
  return entry as unknown as JsonValue
}

export function firstSnapshot({ machines }: Scenario): JournalSnapshot {
  const registers = new Map<string, Register>()
  const [founder] = machines
  for (const [index, spec] of machines.entries()) {
    const version = { counter: index + 1, machine: founder?.id ?? spec.id, boot: 'founding' }
    registers.set(registerKeys.roster(spec.id, 'first'), { version, value: rosterEntry(spec) })
  }
  const epochSeen = { counter: 0, machine: founder?.id ?? ('none' as never) }
  return { registers, epochSeen, incarnation: 1 }
}
