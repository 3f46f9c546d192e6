// One seed from beginning to end: boot, wishes, faults, healing, quiet, verdict.
import { allCheckers } from './checkers/all.ts'
import { Chaos } from './faults/chaos.ts'
import { type Figures, newFigures } from './figures.ts'
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
  readonly figures: Readonly<Figures>
}

export interface RunOptions extends ScenarioOptions {
  readonly plant?: PlantedBug | null
  readonly print?: (line: string) => void
}

export function runSeed(seed: number, options: RunOptions = {}): SeedResult {
  return withPlanted(options.plant ?? null, () => {
    const run = new Run(seed, options)
    run.until(run.endMs)
    return run.finish()
  })
}

/** How often somebody asks something. */
const askEveryMs = { least: 2000, most: 20_000 }

export class Run {
  readonly world: World
  readonly clients: Clients
  readonly figures = newFigures()
  readonly #operators: Operators
  readonly #chaos: Chaos
  #isOver = false

  constructor(seed: number, options: RunOptions = {}) {
    const scenario = scenarioOf(seed, options)
    const world = new World(scenario, options.print ?? null)
    this.world = world
    this.clients = new Clients(world)
    this.#operators = new Operators(world)
    const scene = { world, clients: this.clients, operators: this.#operators }
    this.#chaos = new Chaos({ ...scene, random: world.random.stream('faults') })
    world.observers = together(allCheckers(scene, this.figures))
    this.#begin()
    const asking = world.random.stream('asking')
    this.#again(
      () => asking.between(askEveryMs.least, askEveryMs.most),
      () => this.clients.ask(),
    )
    this.#again(
      () => 1000,
      () => world.observers.second(),
    )
    this.#chaos.plan(scenario.faults, scenario.chaosFromMs, scenario.chaosUntilMs - 1000)
    world.schedule.at(scenario.chaosUntilMs, () => {
      this.#chaos.heal()
      this.#settle()
    })
  }

  get endMs(): number {
    return this.world.scenario.endMs
  }

  /** Lets time pass; whatever the program throws ends the run and is one more violation. */
  until(ms: number): void {
    if (this.#isOver) return
    const { world } = this
    try {
      world.schedule.runUntil(ms)
    } catch (error) {
      this.#isOver = true
      const invariant = error instanceof StormError ? 'S15' : 'A0'
      world.verdict.check(invariant, false, () => describe(error))
    }
  }

  finish(): SeedResult {
    const { world, clients, figures } = this
    if (!this.#isOver) {
      world.observers.ended()
      world.verdict.check('A0', true, () => '')
    }
    const requests: Record<string, number> = {}
    for (const { outcome, failure } of clients.requests) {
      const key = outcome === 'failed' ? `failed: ${failure}` : outcome
      requests[key] = (requests[key] ?? 0) + 1
    }
    const faults = Object.fromEntries(this.#chaos.counts)
    if (clients.slowReaders > 0) faults['slow-reader'] = clients.slowReaders
    return {
      seed: world.scenario.seed,
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

  #begin(): void {
    const { world } = this
    const random = world.random.stream('beginning')
    for (const host of world.hosts) world.after(random.between(0, 2000), () => world.boot(host))
    for (const model of world.scenario.models)
      world.after(random.between(3000, 9000), () => this.#operators.load(model))
  }

  #again(waitMs: () => number, run: () => void): void {
    this.world.after(waitMs(), () => {
      run()
      this.#again(waitMs, run)
    })
  }

  /** Everything is whole again; machines that fell out of the cluster are invited back, then time is taken. */
  #settle(): void {
    const { world } = this
    world.tell('world', 'healed')
    let tries = 0
    const look = (): void => {
      const outsiders = this.#operators.outsiders()
      const isComplete = world.hosts.every((host) => host.isRunning)
      tries += 1
      if ((outsiders.length === 0 && isComplete) || tries > 20) {
        world.tell('world', 'quiet')
        world.observers.healed()
        return
      }
      for (const host of outsiders) this.#operators.admit(host)
      world.after(1000, look)
    }
    // Daemons that were all down come up over three seconds; a removal may still be spreading.
    world.after(4000, look)
  }
}

/** Where in the program it happened, without the paths of this machine: a seed reads the same anywhere. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const frames = error.stack?.match(/[\w-]+\.[jt]s:\d+/g) ?? []
  return `${error.name}: ${error.message} at ${frames.slice(0, 4).join(', ')}`
}
