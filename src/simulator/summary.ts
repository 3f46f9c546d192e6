// Many results as one: what happened, what was checked, what broke, and how to see it again.
import type { RunOptions, SeedResult } from './run-seed.ts'
import { type Invariant, type Violation, invariants } from './verdict.ts'

export interface Summary {
  readonly seeds: number
  readonly from: number
  readonly virtualHours: number
  readonly events: number
  /** Of all traces, in the order of the seeds. */
  readonly hash: string
  readonly faults: Readonly<Record<string, number>>
  readonly faultsTotal: number
  readonly checks: Readonly<Record<string, number>>
  readonly requests: Readonly<Record<string, number>>
  readonly violations: readonly (Violation & { readonly seed: number; readonly replay: string })[]
  readonly figures: Readonly<Record<string, number>>
}

export function summarise(results: readonly SeedResult[], options: RunOptions): Summary {
  const violations = results.flatMap((result) =>
    result.violations.map((violation) => ({
      ...violation,
      seed: result.seed,
      replay: replayCommand(result.seed, options),
    })),
  )
  const faults = addUp(results.map((result) => result.faults))
  return {
    seeds: results.length,
    from: results[0]?.seed ?? 0,
    virtualHours: results.reduce((sum, result) => sum + result.virtualMs, 0) / 3_600_000,
    events: results.reduce((sum, result) => sum + result.events, 0),
    hash: results.length === 1 ? (results[0]?.hash ?? '') : hashOf(results),
    faults,
    faultsTotal: Object.values(faults).reduce((sum, count) => sum + count, 0),
    checks: addUp(results.map((result) => result.checks)),
    requests: addUp(results.map((result) => result.requests)),
    violations,
    figures: most(results),
  }
}

export function replayCommand(seed: number, options: RunOptions): string {
  const flags = [
    options.machines === undefined ? '' : ` --machines ${options.machines}`,
    options.minutes === undefined ? '' : ` --minutes ${options.minutes}`,
    options.plant == null ? '' : ` --plant ${options.plant}`,
  ]
  return `bushel simulate --seed ${seed}${flags.join('')} --trace`
}

/** Every invariant with how often it was looked at; one that nobody looked at proves nothing. */
export function checkRows({ checks, violations }: Summary): readonly (readonly string[])[] {
  const broken = new Map<string, number>()
  for (const { invariant } of violations) broken.set(invariant, (broken.get(invariant) ?? 0) + 1)
  return (Object.keys(invariants) as Invariant[]).map((invariant) => [
    invariant,
    String(checks[invariant] ?? 0),
    String(broken.get(invariant) ?? 0),
    invariants[invariant],
  ])
}

function addUp(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const record of records)
    for (const [key, count] of Object.entries(record)) sum[key] = (sum[key] ?? 0) + count
  const sorted = Object.entries(sum).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted)
}

function most(results: readonly SeedResult[]): Record<string, number> {
  const highest: Record<string, number> = {}
  for (const { figures } of results) {
    for (const [key, value] of Object.entries(figures))
      highest[key] = Math.max(highest[key] ?? 0, value)
  }
  return highest
}

function hashOf(results: readonly SeedResult[]): string {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (const char of results.map((result) => result.hash).join()) {
    const code = char.charCodeAt(0)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ code, 0x85ebca6b)
    high = (high << 13) | (high >>> 19)
  }
  const hex = (part: number): string => (part >>> 0).toString(16).padStart(8, '0')
  return hex(high) + hex(low)
}
