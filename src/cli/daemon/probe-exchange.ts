// Measures the cluster: every machine alone, then what lies between them. One thing at a time, so that nothing
// disturbs what is being measured.
import { ProbeFailedError } from '../../adapters/probe-process.ts'
import type { MachineId } from '../../core/ids.ts'
import type { LaunchMachine } from '../../core/launch/world.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import type { Measurements } from '../../core/plan/probe/apply.ts'
import {
  type MeasuredHop,
  type MeasuredMachine,
  type MeasuredWorldRecord,
  type ProbeOutcome,
  type ProbeVersions,
  combineVersions,
  measureHop,
  measureMachine,
  measureWorld,
} from '../../core/plan/probe/measured.ts'
import { type ProbedWorld, probeRounds } from '../../core/plan/probe/rounds.ts'
import type { MachineState } from '../../core/cluster/state.ts'
import { hopTimings, machineTimings, worldTimings } from '../../wire/plan-data.ts'
import type { ProbeJob } from '../../wire/probe-job.ts'
import { cablesOf, versionsOf } from '../probe/measurement-file.ts'
import type { ClusterFacts } from './facts-exchange.ts'
import { chooseMachines, machinesWithJaccl } from './launch/prepare.ts'
import { type ProbeJobs, messageOf } from './probe-jobs.ts'
import { worldJobs } from './probe-worlds.ts'

export interface ProbeReport {
  readonly measured: Measurements
  /** What could not be measured, and why. */
  readonly problems: readonly string[]
  readonly names: Readonly<Record<string, string>>
}

export interface ProbeOptions {
  /** What lies between machines, without the machines themselves. */
  readonly linksOnly: boolean
}

type Progress = (text: string) => void

export interface ProbeParts {
  readonly state: () => MachineState
  readonly facts: () => Promise<ClusterFacts>
  readonly jobs: ProbeJobs
  readonly wallMs: () => number
  /** Keeps it for the whole cluster; answers with what went wrong. */
  readonly keep: (measured: Measurements) => Promise<readonly string[]>
}

interface Known extends LaunchMachine {
  readonly id: MachineId
  readonly facts: MachineFacts
}

export class ProbeExchange {
  readonly #parts: ProbeParts
  #running: Promise<ProbeReport> | null = null
  readonly #watchers = new Set<Progress>()

  constructor(parts: ProbeParts) {
    this.#parts = parts
  }

  /** A second asker gets the answer of the probe that runs. */
  async probe(options: ProbeOptions, progress: Progress): Promise<ProbeReport> {
    this.#watchers.add(progress)
    this.#running ??= this.#measure(options).finally(() => (this.#running = null))
    try {
      return await this.#running
    } finally {
      this.#watchers.delete(progress)
    }
  }

  async #measure({ linksOnly }: ProbeOptions): Promise<ProbeReport> {
    const { state } = this.#parts
    const facts = await this.#parts.facts()
    const known = knownMachines(state(), facts)
    const rounds = probeRounds({
      machines: known,
      facts: facts.machines,
      busyMachines: machinesWithJaccl(state()),
      linksOnly,
    })
    const problems = facts.silent.map(({ name, reason }) => `${name} could not be asked: ${reason}`)
    problems.push(...rounds.skipped)
    const find = (name: string): Known => {
      const found = known.find((one) => one.name === name)
      if (found === undefined) throw new ProbeFailedError(`${name} is no longer there`)
      return found
    }
    const attempt = async <One>(
      what: string,
      work: (signal: AbortSignal) => Promise<One>,
    ): Promise<readonly One[]> => {
      for (const watch of this.#watchers) watch(what)
      const over = new AbortController()
      try {
        return [await work(over.signal)]
      } catch (error) {
        problems.push(`${what}: ${messageOf(error)}`)
        return []
      } finally {
        // Whoever still measures, on whichever machine, has nobody left to tell.
        over.abort()
      }
    }
    const machines: MeasuredMachine[] = []
    const hops: MeasuredHop[] = []
    const worlds: MeasuredWorldRecord[] = []
    for (const name of rounds.machines)
      machines.push(...(await attempt(name, (signal) => this.#machine(find(name), signal))))
    for (const [a, b] of rounds.hops)
      hops.push(
        ...(await attempt(`a hop between ${a} and ${b}`, (signal) =>
          this.#hop({ source: find(a), target: find(b) }, signal),
        )),
      )
    for (const world of rounds.worlds)
      worlds.push(
        ...(await attempt(`${world.kind} of ${world.order.join(' and ')}`, (signal) =>
          this.#world(world, world.order.map(find), signal),
        )),
      )
    const measured = { machines, worlds, hops }
    problems.push(...(await this.#parts.keep(measured)))
    const names = Object.fromEntries(known.map(({ id, name }) => [id, name]))
    return { measured, problems, names }
  }

  async #machine({ id, facts }: Known, signal: AbortSignal): Promise<MeasuredMachine> {
    const job: ProbeJob = { kind: 'machine' }
    const timings = machineTimings.parse(await this.#parts.jobs.only(id, job, signal))
    return usable(
      measureMachine({
        machine: id,
        versions: versionsNow([facts]),
        atMs: this.#parts.wallMs(),
        decode: timings.decode,
        prefill: timings.prefill,
      }),
    )
  }

  async #hop(
    { source, target }: { source: Known; target: Known },
    signal: AbortSignal,
  ): Promise<MeasuredHop> {
    const { jobs } = this.#parts
    const { host } = await jobs.place(target.id, { facing: source.id, address: null })
    const serving = jobs.lines(target.id, { kind: 'hop-serve', host }, signal)
    const first = await serving.next()
    const { port, secret } = JSON.parse(String(first.value)) as { port: number; secret: string }
    const job: ProbeJob = { kind: 'hop-dial', host, port, secret }
    const { seconds } = hopTimings.parse(await jobs.only(source.id, job, signal))
    await serving.return(undefined)
    const facts = [source.facts, target.facts]
    return usable(
      measureHop({
        source: source.id,
        target: target.id,
        versions: versionsNow(facts),
        cables: cablesOf(facts),
        atMs: this.#parts.wallMs(),
        seconds,
      }),
    )
  }

  async #world(
    world: ProbedWorld,
    members: readonly Known[],
    signal: AbortSignal,
  ): Promise<MeasuredWorldRecord> {
    const { jobs } = this.#parts
    const ranks = await worldJobs(
      world,
      members.map(({ id }) => ({ id, place: (place) => jobs.place(id, place) })),
    )
    const timings = await Promise.all(
      ranks.map(({ machine, job }) => jobs.only(machine, job, signal)),
    )
    const facts = members.map((one) => one.facts)
    return usable(
      measureWorld({
        ...worldTimings.parse(timings[0]),
        machines: members.map(({ id }) => id),
        versions: versionsNow(facts),
        cables: cablesOf(facts),
        atMs: this.#parts.wallMs(),
      }),
    )
  }
}

/** Machines that could hold a rank and said what they are; clients never do. */
function knownMachines(state: MachineState, facts: ClusterFacts): readonly Known[] {
  return chooseMachines(state, []).flatMap((candidate) => {
    const found = facts.machines.find((one) => one.name === candidate.name)
    return found === undefined ? [] : [{ ...candidate, facts: found }]
  })
}

function usable<Value>(outcome: ProbeOutcome<Value>): Value {
  if (outcome.kind === 'unusable') throw new ProbeFailedError(outcome.why)
  return outcome.measured
}

function versionsNow(facts: readonly MachineFacts[]): ProbeVersions {
  return combineVersions(
    facts.map((one) => {
      const versions = versionsOf(one)
      if (versions === null)
        throw new ProbeFailedError(`${one.name} does not say which MLX it runs`)
      return versions
    }),
  )
}
