// What people want of the cluster, read out of the registers: deployments, aliases, roster, settings.
import type { DeploymentId, MachineId } from '../ids.ts'
import type { Advice } from './advice.ts'
import type { DeviceMatrix } from '../backends/device-matrix.ts'
import { isDeployment, isRosterEntry } from './desired-shapes.ts'
import type { ModelRef, Strategy } from './group-plan.ts'
import type { Register, Registers, Version } from './registers.ts'
import { planted } from '../planted.ts'

export interface Deployment {
  readonly id: DeploymentId
  readonly model: ModelRef
  readonly strategy: Strategy
  /** Candidates by id; empty means every machine. */
  readonly machines: readonly MachineId[]
  /** Layers per stage, when a person fixed the split. */
  readonly layers: readonly number[]
  readonly backend: 'auto' | 'ring' | 'jaccl' | 'nccl'
  /** For JACCL: which RDMA device of each rank leads to which other, in the order of `machines`. */
  readonly devices?: DeviceMatrix
  readonly replicas: number
  readonly standby: boolean
  readonly contextTokens: number
  /** Idle time after which it is unloaded; null keeps it. */
  readonly keepAliveMs: number | null
  /** What the planner chose, for strategy "auto". */
  readonly advice?: Advice
}

/** A deployment with the version that wrote it: failures of an older wish do not count against a new one. */
export interface WantedDeployment extends Deployment {
  readonly version: Version
}

export interface RosterEntry {
  readonly machine: MachineId
  readonly name: string
  readonly publicKey: string
  /** Addresses it was last reached at, for dialling after a restart without discovery. */
  readonly addresses: readonly string[]
}

/** By its name, its id, or enough of the id's beginning. */
export function isNamed(
  { machine, name }: Pick<RosterEntry, 'machine' | 'name'>,
  text: string,
): boolean {
  return name === text || machine === text || (text.length >= 8 && machine.startsWith(text))
}

export const registerKeys = {
  deployment: (id: DeploymentId): string => `deployment/${id}`,
  alias: (name: string): string => `alias/${name}`,
  /** One per admission: removing it is for ever, a new invitation makes a new one. */
  roster: (machine: MachineId, admission: string): string => `roster/${machine}/${admission}`,
  drain: (machine: MachineId): string => `drain/${machine}`,
  apiKey: (id: string): string => `key/${id}`,
} as const

function* entriesUnder(
  registers: Registers,
  family: string,
): Generator<readonly [string, Register]> {
  for (const entry of registers) if (entry[0].startsWith(family)) yield entry
}

export function wantedDeployments(registers: Registers): readonly WantedDeployment[] {
  const wanted: WantedDeployment[] = []
  for (const [key, { value, version }] of entriesUnder(registers, 'deployment/')) {
    const deployment: unknown = value
    if (isDeployment(key, deployment)) wanted.push({ ...deployment, version })
  }
  return wanted.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** True only for an explicit tombstone: a key that is missing stops nothing. */
export function isDeploymentRemoved(registers: Registers, id: DeploymentId): boolean {
  const register = registers.get(registerKeys.deployment(id))
  if (register === undefined) return planted.missingIsRemoved
  return register.value === undefined
}

export function aliases(registers: Registers): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [key, { value }] of entriesUnder(registers, 'alias/')) {
    if (typeof value === 'string') found.set(key.slice('alias/'.length), value)
  }
  return found
}

/** Read for every beat, changed once a month: worked out once for each set of registers. */
const rosters = new WeakMap<Registers, ReadonlyMap<MachineId, RosterEntry>>()

export function roster(registers: Registers): ReadonlyMap<MachineId, RosterEntry> {
  const known = rosters.get(registers)
  if (known !== undefined) return known
  const found = readRoster(registers)
  rosters.set(registers, found)
  return found
}

function readRoster(registers: Registers): ReadonlyMap<MachineId, RosterEntry> {
  const found = new Map<MachineId, RosterEntry>()
  for (const [key, { value }] of entriesUnder(registers, 'roster/')) {
    const entry: unknown = value
    if (isRosterEntry(key, entry)) found.set(entry.machine, entry)
  }
  return found
}

/** A machine that was admitted once and has no admission left. */
export function isMachineRemoved(registers: Registers, machine: MachineId): boolean {
  let admissions = 0
  for (const [, { value }] of entriesUnder(registers, `roster/${machine}/`)) {
    if (value !== undefined) return false
    admissions += 1
  }
  return admissions > 0
}

/** Somebody wants this machine empty. */
export function isDrained(registers: Registers, machine: MachineId): boolean {
  return registers.get(registerKeys.drain(machine))?.value !== undefined
}
