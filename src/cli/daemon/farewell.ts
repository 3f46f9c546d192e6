// The word that this machine left a cluster, kept for members that were away when it went: without it they
// would count it as dead for ever.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { roster } from '../../core/cluster/desired.ts'
import type { Register, Registers } from '../../core/cluster/registers.ts'
import type { MachineId } from '../../core/ids.ts'
import { registerEntrySchema, toRegister } from '../../wire/journal-file.ts'

const farewellSchema = z.object({
  /** The cluster's other members at that time; nobody else is told. */
  members: z.array(z.string()),
  entries: z.array(registerEntrySchema),
})

export function saveFarewell(
  home: string,
  { self, registers }: { self: MachineId; registers: Registers },
): void {
  const members = [...roster(registers).keys()].filter((id) => id !== self)
  const entries = [...registers].filter(([key]) => key.startsWith(`roster/${self}/`))
  mkdirSync(join(home, 'state'), { recursive: true })
  writeFileSync(farewellFile(home), JSON.stringify({ members, entries }), { mode: 0o600 })
}

export function farewellFor(
  home: string,
  peer: MachineId,
): readonly (readonly [string, Register])[] {
  try {
    const farewell = farewellSchema.parse(JSON.parse(readFileSync(farewellFile(home), 'utf8')))
    return farewell.members.includes(peer) ? farewell.entries.map(toRegister) : []
  } catch {
    return []
  }
}

function farewellFile(home: string): string {
  return join(home, 'state', 'farewell.json')
}
