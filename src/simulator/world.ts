// A run: machines, network, ranks, people and faults on one clock, from one seed.
import { RankFarm } from './farm.ts'
import { SimHost } from './host.ts'
import { beginLife } from './life.ts'
import { SimNetwork } from './network.ts'
import { type Observer, together } from './observers.ts'
import { Random } from './random.ts'
import { firstSnapshot } from './roster.ts'
import type { Scenario } from './scenario.ts'
import { Schedule } from './schedule.ts'
import { Trace } from './trace.ts'
import { Verdict } from './verdict.ts'

export class World {
  readonly scenario: Scenario
  readonly schedule = new Schedule()
  readonly random: Random
  readonly trace: Trace
  readonly verdict: Verdict
  readonly hosts: readonly SimHost[]
  readonly network: SimNetwork
  readonly farm: RankFarm
  observers: Observer = together([])
  readonly #effectsLeft = new Map<SimHost, number>()

  constructor(scenario: Scenario, print: ((line: string) => void) | null) {
    this.scenario = scenario
    this.random = new Random(scenario.seed, 'world')
    this.trace = new Trace(print)
    this.verdict = new Verdict(
      () => this.schedule.nowMs,
      ({ invariant, text }) => this.trace.tell(this.nowMs, 'check', `${invariant} BROKEN`, text),
    )
    this.hosts = scenario.machines.map((spec) => new SimHost(spec, this.schedule))
    this.network = new SimNetwork({
      scenario,
      schedule: this.schedule,
      random: this.random.stream('network'),
      trace: this.trace,
      hosts: this.hosts,
      onSent: (from, to, message) => {
        this.observers.sent(from, to, message)
        this.countEffect(from)
      },
    })
    this.farm = new RankFarm(this)
    const snapshot = firstSnapshot(scenario)
    for (const host of this.hosts) host.disk.format(snapshot)
  }

  get nowMs(): number {
    return this.schedule.nowMs
  }

  after(ms: number, run: () => void): void {
    this.schedule.after(ms, run)
  }

  tell(who: string, what: string, about = ''): void {
    this.trace.tell(this.nowMs, who, what, about)
  }

  /** The daemon will die right after so many more messages or launches have left it. */
  crashAfterEffects(host: SimHost, effects: number): void {
    this.#effectsLeft.set(host, effects)
  }

  countEffect(host: SimHost): void {
    const left = this.#effectsLeft.get(host)
    if (left === undefined) return
    this.#effectsLeft.set(host, left - 1)
    if (left <= 1) this.crash(host, 'process')
  }

  boot(host: SimHost): void {
    this.#effectsLeft.delete(host)
    if (host.life !== null) return
    host.lives += 1
    this.network.hostBooted(host.spec.index)
    const life = beginLife(this, host)
    host.life = life
    this.tell(host.spec.name, 'boots', `life ${life.number}`)
    this.observers.booted(host)
    host.disk.isTampered = false
    life.machine.start()
  }

  /** Ends the daemon: by a crash its sockets close and its ranks notice; without power nothing does. */
  crash(host: SimHost, how: 'process' | 'power'): void {
    const { life } = host
    if (life === null) return
    this.tell(host.spec.name, how === 'process' ? 'daemon dies' : 'loses power')
    this.#effectsLeft.delete(host)
    if (host.isAsleep) host.wake()
    life.isAlive = false
    life.machine.stop()
    host.disk.crash(this.random)
    host.bury()
    this.observers.crashed(host)
    for (const rank of this.farm.livingOn(host)) {
      if (how === 'power') rank.exit('no power')
      else rank.orphan()
    }
    this.network.hostDied(host.spec.index, how === 'process')
  }
}
