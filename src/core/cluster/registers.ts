// Desired state as a map of versioned registers that merge the same way on every machine, in any
// order. A key that is missing says nothing; only a tombstone says "remove".
import type { MachineId } from '../ids.ts'
import type { JsonValue } from '../json.ts'
import { planted } from '../planted.ts'

export interface Version {
  readonly counter: number
  readonly machine: MachineId
  /** Drawn at each start: a machine restored from a backup may count up again, but never as itself. */
  readonly boot: string
}

export interface Register {
  readonly version: Version
  /** Undefined is a tombstone. */
  readonly value: JsonValue | undefined
}

export type Registers = ReadonlyMap<string, Register>

export const noRegisters: Registers = new Map()

/** Families in which a removal wins for ever: a machine or key that was shut out stays out. */
const removalWins = ['roster/', 'key/']

export function compareVersions(a: Version, b: Version): number {
  if (a.counter !== b.counter) return a.counter - b.counter
  if (a.machine !== b.machine) return a.machine < b.machine ? -1 : 1
  if (a.boot !== b.boot) return a.boot < b.boot ? -1 : 1
  return 0
}

function newerOf(key: string, a: Register, b: Register): Register {
  if (planted.lastComeWins) return b
  if (!planted.machineResurrected && removalWins.some((family) => key.startsWith(family))) {
    if ((a.value === undefined) !== (b.value === undefined)) return a.value === undefined ? a : b
  }
  return compareVersions(a.version, b.version) >= 0 ? a : b
}

export interface MergeOutcome {
  readonly registers: Registers
  readonly changedKeys: readonly string[]
}

export function mergeRegisters(
  mine: Registers,
  theirs: Iterable<readonly [string, Register]>,
): MergeOutcome {
  const merged = new Map(mine)
  const changedKeys: string[] = []
  for (const [key, register] of theirs) {
    const old = merged.get(key)
    const winner = old === undefined ? register : newerOf(key, old, register)
    if (winner === old) continue
    merged.set(key, winner)
    changedKeys.push(key)
  }
  return changedKeys.length === 0
    ? { registers: mine, changedKeys }
    : { registers: merged, changedKeys }
}

export interface Writer {
  readonly machine: MachineId
  readonly boot: string
}

function highestCounter(registers: Registers): number {
  let highest = 0
  for (const register of registers.values()) highest = Math.max(highest, register.version.counter)
  return highest
}

/**
 * Writes above everything seen so far, so that a later write wins wherever both are known. Where a removal wins for
 * ever it wins over a write made here as well: the writer may not have heard of it when the write was asked for.
 */
export function writeRegister(
  registers: Registers,
  write: { key: string; value: JsonValue | undefined; by: Writer },
): Registers {
  const { key, value } = write
  const version = { counter: highestCounter(registers) + 1, ...write.by }
  const old = registers.get(key)
  const winner = old === undefined ? { version, value } : newerOf(key, old, { version, value })
  return winner === old ? registers : new Map(registers).set(key, winner)
}

/** A short text that is equal exactly when two machines hold the same registers. */
export function registersDigest(registers: Registers): string {
  // Order-free sum of per-register hashes: cheap to compute, and equal sets give equal sums.
  let low = 0
  let high = 0
  for (const [key, { version, value }] of registers) {
    const text = `${key}\0${version.counter}\0${version.machine}\0${version.boot}\0${value === undefined ? 0 : 1}`
    low = (low + hash32(text, 0x811c9dc5)) >>> 0
    high = (high + hash32(text, 0x01000193)) >>> 0
  }
  return `${registers.size.toString(36)}.${high.toString(36)}.${low.toString(36)}`
}

function hash32(text: string, seed: number): number {
  let hash = seed
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  hash ^= hash >>> 15
  return Math.imul(hash, 0x2c1b3c6d) >>> 0
}
