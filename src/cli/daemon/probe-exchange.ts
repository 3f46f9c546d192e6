// Measures the cluster: every machine alone, then each pair that has a way between them. One thing at a time,
// so that nothing disturbs what is being measured.
import { createInterface } from 'node:readline'
import {
  type ProbeJob,
  type ProbeProgram,
  ProbeFailedError,
  probeJob,
  runProbe,
} from '../../adapters/probe-process.ts'
import type { MachineId } from '../../core/ids.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import type { Measurements } from '../../core/plan/probe/apply.ts'
import {
  type MeasuredHop,
  type MeasuredMachine,
  type MeasuredWorldRecord,
  combineVersions,
  measureHop,
  measureMachine,
  measureWorld,
} from '../../core/plan/probe/measured.ts'
import type { Link } from '../../core/topology/links.ts'
import { buildTopology } from '../../core/topology/topology.ts'
import type { Machine } from '../../runtime/machine.ts'
import { hopTimings, machineTimings, worldTimings } from '../../wire/plan-data.ts'
import {
  cablesOf,
  mergeMeasurements,
  readMeasurements,
  versionsOf,
  writeMeasurements,
} from '../probe/measurement-file.ts'
import type { ClusterFacts } from './facts-exchange.ts'
import type { Peers } from './peers.ts'

export interface ProbeReport {
  readonly measured: Measurements
  /** What could not be measured, and why. */
  readonly problems: readonly string[]
  readonly names: Readonly<Record<string, string>>
}

export interface ProbeParts {
  readonly machine: () => Machine
  readonly peers: Peers
  readonly facts: () => Promise<ClusterFacts>
  readonly program: ProbeProgram
  readonly home: string
  readonly wallMs: () => number
  /** A port between 20000 and 29999 that is probably free. */
  readonly anyPort: () => number
}

interface Known {
  readonly id: MachineId
  readonly facts: MachineFacts
}

export class ProbeExchange {
  readonly #parts: ProbeParts
  #running: Promise<ProbeReport> | null = null

  constructor(parts: ProbeParts) {
    this.#parts = parts
    parts.peers.bulk.provide({
      name: 'probe',
      serve: async (request, transfer) => {
        const job = probeJob.parse(request['job'])
        transfer.open({})
        const lines = runProbe(parts.program, job)
        transfer.socket.once('close', () => void lines.return(undefined))
        try {
          for await (const line of lines) transfer.socket.write(`${line}\n`)
        } catch (error) {
          transfer.socket.write(`${JSON.stringify({ failed: messageOf(error) })}\n`)
        }
        transfer.socket.end()
      },
    })
  }

  /** A second asker gets the answer of the probe that runs. */
  probe(): Promise<ProbeReport> {
    this.#running ??= this.#measure().finally(() => (this.#running = null))
    return this.#running
  }

  async #measure(): Promise<ProbeReport> {
    const { home } = this.#parts
    const facts = await this.#parts.facts()
    const problems = facts.silent.map(({ name, reason }) => `${name} could not be asked: ${reason}`)
    const known = facts.machines.flatMap((one): Known[] => {
      const id = this.#idOf(one.name)
      return id === null ? [] : [{ id, facts: one }]
    })
    const machines: MeasuredMachine[] = []
    const hops: MeasuredHop[] = []
    const worlds: MeasuredWorldRecord[] = []
    const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
      try {
        await work()
      } catch (error) {
        problems.push(`${what}: ${messageOf(error)}`)
      }
    }
    for (const one of known)
      await attempt(one.facts.name, async () => void machines.push(await this.#machine(one)))
    for (const pair of pairsOf(known)) {
      const what = pair.map(({ facts: { name } }) => name).join(' and ')
      const link = wayBetween(pair)
      if (link === null) problems.push(`${what}: no way between them has addresses at both ends`)
      else {
        await attempt(
          `a hop between ${what}`,
          async () => void hops.push(await this.#hop(pair, link)),
        )
        await attempt(
          `collectives of ${what}`,
          async () => void worlds.push(await this.#world(pair, link)),
        )
      }
    }
    const measured = { machines, worlds, hops }
    await writeMeasurements(home, mergeMeasurements(readMeasurements(home), measured))
    const names = Object.fromEntries(known.map(({ id, facts: { name } }) => [id, name]))
    return { measured, problems, names }
  }

  async #machine({ id, facts }: Known): Promise<MeasuredMachine> {
    const timings = machineTimings.parse(await this.#only(id, { kind: 'machine' }))
    const outcome = measureMachine({
      machine: id,
      versions: required(facts),
      atMs: this.#parts.wallMs(),
      decode: timings.decode,
      prefill: timings.prefill,
    })
    if (outcome.kind === 'unusable') throw new ProbeFailedError(outcome.why)
    return outcome.measured
  }

  async #hop([source, target]: Pair, link: Way): Promise<MeasuredHop> {
    const host = link.addresses[1]
    const serving = this.#lines(target.id, { kind: 'hop-serve', host })
    try {
      const first = await serving.next()
      const { port, secret } = JSON.parse(String(first.value)) as { port: number; secret: string }
      const job: ProbeJob = { kind: 'hop-dial', host, port, secret }
      const { seconds } = hopTimings.parse(await this.#only(source.id, job))
      const outcome = measureHop({
        source: source.id,
        target: target.id,
        versions: combineVersions([source, target].map(({ facts }) => required(facts))),
        cables: cablesOf([source.facts, target.facts]),
        atMs: this.#parts.wallMs(),
        seconds,
      })
      if (outcome.kind === 'unusable') throw new ProbeFailedError(outcome.why)
      return outcome.measured
    } finally {
      await serving.return(undefined)
    }
  }

  async #world(pair: Pair, link: Way): Promise<MeasuredWorldRecord> {
    const first = this.#parts.anyPort()
    const hosts = link.addresses.map((host, rank) => ({ host, port: first + rank }))
    const [timings] = await Promise.all(
      pair.map(({ id }, rank) => this.#only(id, { kind: 'world', rank, hosts })),
    )
    const outcome = measureWorld({
      ...worldTimings.parse(timings),
      machines: pair.map(({ id }) => id),
      versions: combineVersions(pair.map(({ facts }) => required(facts))),
      cables: cablesOf(pair.map(({ facts }) => facts)),
      atMs: this.#parts.wallMs(),
    })
    if (outcome.kind === 'unusable') throw new ProbeFailedError(outcome.why)
    return outcome.measured
  }

  /** The one document that a measuring process prints. */
  async #only(machine: MachineId, job: ProbeJob): Promise<unknown> {
    let last = ''
    for await (const line of this.#lines(machine, job)) last = line
    if (last === '') throw new ProbeFailedError('it printed nothing')
    return JSON.parse(last)
  }

  async *#lines(machine: MachineId, job: ProbeJob): AsyncGenerator<string, void, undefined> {
    if (machine === this.#parts.machine().state.self.id) {
      yield* runProbe(this.#parts.program, job)
      return
    }
    const stream = await this.#parts.peers.bulk.open(machine, { service: 'probe', job })
    try {
      for await (const line of createInterface({ input: stream.socket })) {
        const { failed } = JSON.parse(line) as { failed?: string }
        if (failed !== undefined) throw new ProbeFailedError(failed)
        yield line
      }
    } finally {
      stream.socket.destroy()
    }
  }

  #idOf(name: string): MachineId | null {
    const { self, peers } = this.#parts.machine().state
    if (self.name === name) return self.id
    return [...peers.values()].find((peer) => peer.record?.name === name)?.id ?? null
  }
}

type Pair = readonly [Known, Known]

function pairsOf(known: readonly Known[]): readonly Pair[] {
  return known.flatMap((a, index) => known.slice(index + 1).map((b): Pair => [a, b]))
}

interface Way {
  readonly addresses: readonly [string, string]
}

/** The quickest link that has an address at both ends, in the order of the pair. */
function wayBetween(pair: Pair): Way | null {
  const order: readonly Link['class'][] = ['rdma', 'thunderbolt-ip', 'ethernet', 'wifi']
  const found = buildTopology(pair.map(({ facts }) => facts))
    .links.toSorted((a, b) => order.indexOf(a.class) - order.indexOf(b.class))
    .flatMap(({ ends }): Way[] => {
      const [a, b] = pair.map(
        ({ facts: { name } }) => ends.find((end) => end.machine === name)?.address ?? null,
      )
      return a == null || b == null ? [] : [{ addresses: [a, b] }]
    })
  return found[0] ?? null
}

function required(facts: MachineFacts): NonNullable<ReturnType<typeof versionsOf>> {
  const versions = versionsOf(facts)
  if (versions === null) throw new ProbeFailedError('it does not say which MLX it runs')
  return versions
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error)
