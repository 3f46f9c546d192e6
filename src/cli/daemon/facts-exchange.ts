// What every machine of the cluster knows about itself and about the ways to the others, collected by the one
// that was asked.
import { pathTargets } from '../../core/doctor/run-doctor.ts'
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

type Targets = Parameters<Prober['probePaths']>[0]

interface FactsParts {
  readonly machine: () => Machine
  readonly peers: Peers
  readonly prober: () => Prober
  readonly port: number
  /** The links of this machine, as last measured. */
  readonly links: () => readonly LinkFact[]
}

export class FactsExchange {
  readonly #parts: FactsParts

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
    const asked = await askEveryPeer(this.#parts, { service: 'machine-facts' })
    const { heard: answers, silent, away } = asked
    const heard = answers.map(({ id, answer }) => ({
      id,
      facts: answer['facts'] as MachineFacts,
      links: (answer['links'] ?? []) as readonly LinkFact[],
    }))
    const own = await this.#ownFacts()
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
    const links = mergeLinkFacts([
      ...this.#parts.links(),
      ...heard.flatMap((one) => one.links),
    ]).filter((link) =>
      link.ends.every((end) => machines.some((machine) => machine.name === end.machine)),
    )
    return { machines, paths: paths.flat(), links, local: self.name, silent, away }
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
