// What every machine of the cluster knows about itself and about the ways to the others, collected by the one
// that was asked.
import { pathTargets } from '../../core/doctor/run-doctor.ts'
import type { MachineId } from '../../core/ids.ts'
import type { MachineFacts, PathFacts } from '../../core/machine-facts/machine.ts'
import type { Prober } from '../../ports/prober.ts'
import type { Machine } from '../../runtime/machine.ts'
import { type PeerAnswer, type Silent, askEveryPeer, askPeer } from './ask-peers.ts'
import type { Peers } from './peers.ts'

export interface ClusterFacts {
  readonly machines: readonly MachineFacts[]
  readonly paths: readonly PathFacts[]
  readonly local: string
  /** Machines that could not be asked, and why. */
  readonly silent: Silent
}

/** Cables may have been moved since; a world over them is checked anew before it starts. */
const rememberMsMax = 600_000

type Targets = Parameters<Prober['probePaths']>[0]

export class FactsExchange {
  readonly #parts: { machine: () => Machine; peers: Peers; prober: () => Prober; port: number }

  #remembered: { readonly atMs: number; readonly machines: readonly MachineFacts[] } = {
    atMs: -Infinity,
    machines: [],
  }

  constructor(parts: { machine: () => Machine; peers: Peers; prober: () => Prober; port: number }) {
    this.#parts = parts
    parts.peers.bulk.provide({
      name: 'machine-facts',
      serve: async (_request, transfer) => {
        transfer.open({ facts: await this.#ownFacts() })
        transfer.socket.end()
      },
    })
    parts.peers.bulk.provide({
      name: 'machine-paths',
      serve: async (request, transfer) => {
        transfer.open({ paths: await this.#ownPaths(request['targets'] as Targets) })
        transfer.socket.end()
      },
    })
  }

  async collect(): Promise<ClusterFacts> {
    const { self } = this.#parts.machine().state
    const { own, heard, silent } = await this.#askAll()
    const machines = [own, ...heard.map((one) => one.facts)]
    const targets = pathTargets(machines, this.#parts.port)
    const paths = await Promise.all([
      this.#ownPaths(targets.get(own.name) ?? []),
      ...heard.map(async ({ id, facts }) => {
        const request = { service: 'machine-paths', targets: targets.get(facts.name) ?? [] }
        const answer = await askPeer(this.#parts.peers, id, request).catch((): PeerAnswer => ({
          paths: [],
        }))
        return answer['paths'] as readonly PathFacts[]
      }),
    ])
    return { machines, paths: paths.flat(), local: self.name, silent }
  }

  /**
   * What the living machines are made of, without the ways between them; from memory where everybody has said so
   * lately. People may be waiting for what is decided with it, and chips do not change.
   */
  async recent(): Promise<Pick<ClusterFacts, 'machines' | 'silent'>> {
    const { self, peers } = this.#parts.machine().state
    const names = [...peers.values()].flatMap(({ status, record }) =>
      status === 'alive' && record !== null ? [record.name] : [],
    )
    const { atMs, machines } = this.#remembered
    const there = [self.name, ...names].map((name) => machines.find((one) => one.name === name))
    const known = there.flatMap((one) => one ?? [])
    if (performance.now() - atMs < rememberMsMax && known.length === there.length)
      return { machines: known, silent: [] }
    return this.machinesNow()
  }

  /** The same, asked now. */
  async machinesNow(): Promise<Pick<ClusterFacts, 'machines' | 'silent'>> {
    const { own, heard, silent } = await this.#askAll()
    return { machines: [own, ...heard.map((one) => one.facts)], silent }
  }

  async #askAll(): Promise<{
    own: MachineFacts
    heard: readonly { id: MachineId; facts: MachineFacts }[]
    silent: Silent
  }> {
    const [own, { heard: answers, silent }] = await Promise.all([
      this.#ownFacts(),
      askEveryPeer(this.#parts, { service: 'machine-facts' }),
    ])
    const heard = answers.map(({ id, answer }) => ({ id, facts: answer['facts'] as MachineFacts }))
    this.#remembered = {
      atMs: performance.now(),
      machines: [own, ...heard.map((one) => one.facts)],
    }
    return { own, heard, silent }
  }

  /** For the loop: what was heard becomes an input, also when nothing was. */
  async learn(): Promise<void> {
    const { machines, silent } = await this.collect().catch((error: unknown) => ({
      machines: [],
      silent: [
        {
          name: this.#parts.machine().state.self.name,
          reason: error instanceof Error ? error.message : String(error),
        },
      ],
    }))
    this.#parts.machine().post({ kind: 'facts-learned', facts: { machines, silent } })
  }

  /** Under the name that the cluster knows the machine by. */
  async #ownFacts(): Promise<MachineFacts> {
    const facts = await this.#parts.prober().probeMachine()
    return { ...facts, name: this.#parts.machine().state.self.name }
  }

  async #ownPaths(targets: Targets): Promise<readonly PathFacts[]> {
    const { name } = this.#parts.machine().state.self
    const paths = await this.#parts.prober().probePaths(targets)
    return paths.map((path) => ({ ...path, machine: name }))
  }
}
