// One seed from beginning to end: boot, wishes, faults, healing, quiet, verdict.
import { allCheckers } from './checkers/all.ts'
import type { Figures } from './checkers/bounds.ts'
import { Chaos } from './faults/chaos.ts'
import { together } from './observers.ts'
import { Clients } from './people/clients.ts'
import { Operators } from './people/operators.ts'
import { type PlantedBug, withPlanted } from './plant.ts'
import { type ScenarioOptions, scenarioOf } from './scenario.ts'
import { StormError } from './schedule.ts'
import type { Invariant, Violation } from './verdict.ts'
import { World } from './world.ts'

export interface SeedResult {
  readonly seed: number
  readonly machines: number
  readonly virtualMs: number
  readonly hash: string
  readonly events: number
  readonly faults: Readonly<Record<string, number>>
  readonly checks: Readonly<Partial<Record<Invariant, number>>>
  readonly violations: readonly Violation[]
  readonly requests: Readonly<Record<string, number>>
  readonly figures: Figures
}

export interface RunOptions extends ScenarioOptions {
  readonly plant?: PlantedBug | null
  readonly print?: (line: string) => void
}

export function runSeed(seed: number, options: RunOptions = {}): SeedResult {
  return withPlanted(options.plant ?? null, () => run(seed, options))
}

function run(seed: number, options: RunOptions): SeedResult {
  const scenario = scenarioOf(seed, options)
  const world = new World(scenario, options.print ?? null)
  const clients = new Clients(world)
  const operators = new Operators(world)
  const chaos = new Chaos({ world, clients, operators, random: world.random.stream('faults') })
  const figures: Figures = {
    messagesPerPeerMost: 0,
    journalBytesMost: 0,
    stateEntriesMost: 0,
    messages: 0,
    terms: 0,
    termsMost: 0,
    startsMost: 0,
    journalWrites: 0,
  }
  world.observers = together(allCheckers({ world, clients, operators }, figures))
  begin(world, operators)
  keepAsking(world, clients)
  everySecond(world, () => world.observers.second())
  chaos.plan(scenario.faults, scenario.chaosFromMs, scenario.chaosUntilMs - 1000)
  world.schedule.at(scenario.chaosUntilMs, () => {
    chaos.heal()
    settle(world, operators)
  })
  try {
    world.schedule.runUntil(scenario.endMs)
    world.observers.ended()
    world.verdict.check('A0', true, () => '')
  } catch (error) {
    const invariant = error instanceof StormError ? 'S15' : 'A0'
    world.verdict.check(invariant, false, () => describe(error))
  }
  return report(seed, { world, clients, chaos, figures })
}

/** Where in the program it happened, without the paths of this machine: a seed reads the same anywhere. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const frames = error.stack?.match(/[\w-]+\.ts:\d+/g) ?? []
  return `${error.name}: ${error.message} at ${frames.slice(0, 4).join(', ')}`
}

function begin(world: World, operators: Operators): void {
  const random = world.random.stream('beginning')
  for (const host of world.hosts) world.after(random.between(0, 2000), () => world.boot(host))
  for (const model of world.scenario.models) {
    world.after(random.between(3000, 9000), () => operators.load(model))
  }
}

function keepAsking(world: World, clients: Clients): void {
  const random = world.random.stream('asking')
  const again = (): void => {
    world.after(random.between(2000, 20_000), () => {
      clients.ask()
      again()
    })
  }
  again()
}

function everySecond(world: World, run: () => void): void {
  const again = (): void => {
    world.after(1000, () => {
      run()
      again()
    })
  }
  again()
}

/** Everything is whole again; machines that fell out of the cluster are invited back, then time is taken. */
function settle(world: World, operators: Operators): void {
  world.tell('world', 'healed')
  let tries = 0
  const look = (): void => {
    const outsiders = operators.outsiders()
    const isComplete = world.hosts.every((host) => host.isRunning)
    tries += 1
    if ((outsiders.length === 0 && isComplete) || tries > 20) {
      world.tell('world', 'quiet')
      world.observers.healed()
      return
    }
    for (const host of outsiders) operators.admit(host)
    world.after(1000, look)
  }
  // Daemons that were all down come up over three seconds; a removal may still be spreading.
  world.after(4000, look)
}

function report(
  seed: number,
  parts: { world: World; clients: Clients; chaos: Chaos; figures: Figures },
): SeedResult {
  const { world, clients, chaos, figures } = parts
  const requests: Record<string, number> = {}
  for (const { outcome, failure } of clients.requests) {
    const key = outcome === 'failed' ? `failed: ${failure}` : outcome
    requests[key] = (requests[key] ?? 0) + 1
  }
  const faults = Object.fromEntries(chaos.counts)
  if (clients.slowReaders > 0) faults['slow-reader'] = clients.slowReaders
  return {
    seed,
    machines: world.hosts.length,
    virtualMs: world.nowMs,
    hash: world.trace.hash,
    events: world.trace.events,
    faults,
    checks: Object.fromEntries(world.verdict.checks),
    violations: world.verdict.violations,
    requests,
    figures,
  }
}
