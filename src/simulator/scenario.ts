// What a seed means: which machines there are, what they lend and hold, how they are joined, which models
// people will want. Everything that happens later is drawn from other streams of the same seed.
import { type ModelRef, freelyCut } from '../core/cluster/group-plan.ts'
import type { MachineRecord, Role } from '../core/cluster/record.ts'
import { type MachineId, type ModelDigest, machineId, modelDigest } from '../core/ids.ts'
import { GB } from '../core/units.ts'
import { Random } from './random.ts'

export interface MachineSpec {
  readonly index: number
  readonly id: MachineId
  readonly name: string
  readonly role: Role
  readonly memoryLendBytes: number
  readonly computesIn: MachineRecord['computesIn']
  readonly models: readonly ModelRef[]
  /** Wall clocks are set by people: up to an hour off. */
  readonly wallSkewMs: number
  /** Monotonic clocks of different machines have nothing in common. */
  readonly monotonicOffsetMs: number
}

export interface LinkSpec {
  readonly a: number
  readonly b: number
  readonly name: string
  readonly delayMs: number
}

export interface Scenario {
  readonly seed: number
  readonly machines: readonly MachineSpec[]
  readonly links: readonly LinkSpec[]
  readonly models: readonly ModelRef[]
  /** Faults happen between these; behind the second there are none, and liveness must show. */
  readonly chaosFromMs: number
  readonly chaosUntilMs: number
  readonly endMs: number
  readonly faults: number
  /** Whether messages really become JSON on their way: slower, so only some seeds do it. */
  readonly serialises: boolean
}

export interface ScenarioOptions {
  readonly machines?: number
  readonly minutes?: number
  readonly faults?: number
}

/** Long enough for a ghost to be forgotten and a request to be answered after the last fault. */
const quietMs = 100_000
const chaosFromMs = 15_000

export function scenarioOf(seed: number, options: ScenarioOptions = {}): Scenario {
  const random = new Random(seed, 'scenario')
  const count = options.machines ?? random.whole(1, 16)
  const models = makeModels(random)
  const machines = Array.from({ length: count }, (_, index) => makeMachine(random, index, models))
  const endMs = Math.max(5, options.minutes ?? random.between(5, 6)) * 60_000
  return {
    seed,
    machines,
    links: makeLinks(random, count),
    models,
    chaosFromMs,
    chaosUntilMs: endMs - quietMs,
    endMs,
    faults: options.faults ?? random.whole(10, 24),
    serialises: random.chance(0.15),
  }
}

function makeModels(random: Random): readonly ModelRef[] {
  return Array.from({ length: random.whole(1, 4) }, (_, index): ModelRef => {
    const weightsBytes = Math.round(random.between(1, 14) * GB)
    return {
      name: `model-${index}`,
      digest: digestOf(random.hex(16)),
      architecture: 'llama',
      layers: 24,
      weightsBytes,
      parameters: Math.round(weightsBytes / 2),
      kvBytesPerToken: 20_000,
      contextTokens: 4096,
      defaults: {},
      cut: freelyCut,
    }
  })
}

function digestOf(hex: string): ModelDigest {
  return modelDigest(`d${hex}`)
}

function makeMachine(random: Random, index: number, models: readonly ModelRef[]): MachineSpec {
  const role = index === 0 ? 'always' : roleFrom(random.fraction())
  return {
    index,
    id: machineId(random.hex(16)),
    name: `m${index}`,
    role,
    memoryLendBytes: Math.round(random.between(8, 48) * GB),
    computesIn: random.chance(0.3) ? 'float32' : 'stored',
    models: models.filter(() => random.chance(0.85)),
    wallSkewMs: random.between(-3_600_000, 3_600_000),
    monotonicOffsetMs: random.between(0, 10_000_000),
  }
}

function roleFrom(fraction: number): Role {
  if (fraction < 0.6) return 'always'
  return fraction < 0.9 ? 'sometimes' : 'client'
}

/** Ethernet everywhere, a faster cable between some. */
function makeLinks(random: Random, count: number): readonly LinkSpec[] {
  const links: LinkSpec[] = []
  for (let a = 0; a < count; a++) {
    for (let b = a + 1; b < count; b++) {
      if (random.chance(0.5)) links.push({ a, b, name: 'thunderbolt', delayMs: 0.3 })
      links.push({ a, b, name: 'ethernet', delayMs: random.between(0.5, 3) })
    }
  }
  return links
}
