// What every machine of the cluster knows about itself and about the ways to the others, collected by the one
// that was asked.
import { pathTargets } from '../../core/doctor/run-doctor.ts'
import type { MachineId } from '../../core/ids.ts'
import { type LinkFact, mergeLinkFacts } from '../../core/links/link-fact.ts'
import type { MachineFacts, PathFacts } from '../../core/machine-facts/machine.ts'
import type { Prober } from '../../ports/prober.ts'
import type { Machine } from '../../runtime/machine.ts'
import { type PeerAnswer, type Silent, askEveryPeer, askPeer } from './ask-peers.ts'
import type { Peers } from './peers.ts'

export interface ClusterFacts {
  readonly machines: readonly MachineFacts[]
  readonly paths: readonly PathFacts[]
  /** What the links between them carry, as measured. */
  readonly links: readonly LinkFact[]
  readonly local: string
  /** Machines that could not be asked, and why; and those that are not heard at all. */
  readonly silent: Silent
  readonly away: Silent
}

/** Cables may have been moved since; a world over them is checked anew before it starts. */
const rememberMsMax = 600_000

type Targets = Parameters<Prober['probePaths']>[0]

interface FactsParts {
  readonly machine: () => Machine
  readonly peers: Peers
  readonly prober: () => Prober
  readonly port: number
  /** The links of this machine, as last measured. */
  readonly links: () => readonly LinkFact[]
}

/** What another machine says of itself and of its links. */
interface Heard {
  readonly id: MachineId
  readonly facts: MachineFacts
  readonly links: readonly LinkFact[]
}

export type FactsWithoutPaths = Pick<ClusterFacts, 'machines' | 'links' | 'silent'>

export class FactsExchange {
  readonly #parts: FactsParts
  #remembered: { atMs: number; own: MachineFacts | null; heard: readonly Heard[] } = {
    atMs: -Infinity,
    own: null,
    heard: [],
  }

  constructor(parts: FactsParts) {
    this.#parts = parts
    parts.peers.bulk.provide({
      name: 'machine-facts',
      serve: async (_request, transfer) => {
        transfer.open({ facts: await this.#ownFacts(), links: parts.links() })
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
    const { own, heard, silent, away } = await this.#askAll()
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
    const links = this.#linksAmong(machines, heard)
    return { machines, paths: paths.flat(), links, local: self.name, silent, away }
  }

  /**
   * What the living machines are made of, without the ways between them; from memory where everybody has said so
   * lately. People may be waiting for what is decided with it, and chips do not change.
   */
  async recent(): Promise<FactsWithoutPaths> {
    const { self, peers } = this.#parts.machine().state
    const names = [...peers.values()].flatMap(({ status, record }) =>
      status === 'alive' && record !== null ? [record.name] : [],
    )
    const { atMs, own, heard } = this.#remembered
    const all = [...(own === null ? [] : [own]), ...heard.map((one) => one.facts)]
    const there = [self.name, ...names].map((name) => all.find((one) => one.name === name))
    const known = there.flatMap((one) => one ?? [])
    if (performance.now() - atMs < rememberMsMax && known.length === there.length)
      return { machines: known, links: this.#linksAmong(known, heard), silent: [] }
    return this.machinesNow()
  }

  /** The same, asked now. */
  async machinesNow(): Promise<FactsWithoutPaths> {
    const { own, heard, silent } = await this.#askAll()
    const machines = [own, ...heard.map((one) => one.facts)]
    return { machines, links: this.#linksAmong(machines, heard), silent }
  }

  #linksAmong(machines: readonly MachineFacts[], heard: readonly Heard[]): readonly LinkFact[] {
    const all = [...this.#parts.links(), ...heard.flatMap((one) => one.links)]
    return mergeLinkFacts(all).filter((link) =>
      link.ends.every((end) => machines.some((machine) => machine.name === end.machine)),
    )
  }

  async #askAll(): Promise<{
    own: MachineFacts
    heard: readonly Heard[]
    silent: Silent
    away: Silent
  }> {
    const [own, { heard: answers, silent, away }] = await Promise.all([
      this.#ownFacts(),
      askEveryPeer(this.#parts, { service: 'machine-facts' }),
    ])
    const heard = answers.map(({ id, answer }): Heard => ({
      id,
      facts: answer['facts'] as MachineFacts,
      links: (answer['links'] ?? []) as readonly LinkFact[],
    }))
    this.#remembered = { atMs: performance.now(), own, heard }
    return { own, heard, silent, away }
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
