// Who belongs to the simulated cluster: the roster everybody starts with, and coming back after a removal.
import { type RosterEntry, registerKeys, roster } from '../core/cluster/desired.ts'
import type { Register, Registers } from '../core/cluster/registers.ts'
import type { MachineId } from '../core/ids.ts'
import type { JsonValue } from '../core/json.ts'
import type { JournalSnapshot } from '../ports/journal.ts'
import type { MachineSpec, Scenario } from './scenario.ts'

export function rosterEntry({ id, name }: MachineSpec): JsonValue {
  const entry: RosterEntry = { machine: id, name, publicKey: '', addresses: [] }
  return entry as unknown as JsonValue
}

export interface Farewell {
  readonly members: ReadonlySet<MachineId>
  readonly entries: readonly (readonly [string, Register])[]
}

/** As the real daemon keeps it: who was there, and the word that we are not. */
export function farewellOf(registers: Registers, self: MachineId): Farewell {
  const members = new Set(roster(registers).keys())
  members.delete(self)
  return { members, entries: admissionsOf(registers, self) }
}

/** Every admission of a machine, withdrawn or not. */
export function admissionsOf(
  registers: Registers,
  id: MachineId,
): readonly (readonly [string, Register])[] {
  return [...registers].filter(([key]) => key.startsWith(`roster/${id}/`))
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
