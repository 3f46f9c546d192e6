// What each link carries, measured when it comes up and when somebody asks. One of its two machines measures
// both directions and tells the other, so that no two probes stand in each other's way.
import { z } from 'zod'
import type { LinkStatus } from '../../adapters/peers/network.ts'
import {
  type TransportLimits,
  probeServices,
  sampleLink,
  transportLimits,
} from '../../adapters/peers/link-probe.ts'
import type { MachineId } from '../../core/ids.ts'
import { linkContext } from '../../core/links/link-context.ts'
import { type LinkFact, linkFact, turnMeasure } from '../../core/links/link-fact.ts'
import { measureLink } from '../../core/links/measured-link.ts'
import type { MachineFacts } from '../../core/machine-facts/machine.ts'
import { machineName } from '../../core/cluster/state.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Machine, Notes } from '../../runtime/machine.ts'
import { type LinkMeasurement, linkMeasurement } from '../../wire/link-measurement.ts'
import type { FactsExchange } from './facts-exchange.ts'
import type { Peers } from './peers.ts'

export interface LinkMeasurementsParts {
  readonly machine: () => Machine
  readonly peers: Peers
  readonly facts: FactsExchange
  readonly clock: Clock
  readonly notes: Notes
  /** Whether links are measured when they come up. */
  readonly atJoin: boolean
}

/** Short, since other things happen when a machine comes; asked for, it may take its time. */
const joinTransferMs = 100
const surelyMs = 400
/** A link that has just come up is still being joined by others. */
const settleMs = 3000
const againAfterMs = 3_600_000
/** A slow one may have been measured at a bad moment, or mended meanwhile. */
const slowAgainMs = 300_000
/** After one that gave no figure; and a link that comes and goes is not measured each time it comes. */
const retryMs = 30_000
const lookEveryMs = 1000

interface Known {
  readonly atMs: number
  readonly measured: LinkMeasurement
}

export class LinkMeasurements {
  readonly #parts: LinkMeasurementsParts
  readonly #known = new Map<string, Known>()
  readonly #seenMs = new Map<string, number>()
  #busy: Promise<void> = Promise.resolve()
  #isLooking = false
  #limits: TransportLimits | null = null

  constructor(parts: LinkMeasurementsParts) {
    this.#parts = parts
    const { peers, clock } = parts
    for (const service of probeServices) peers.bulk.provide(service)
    peers.bulk.provide({
      name: 'link-measured',
      serve: async (request, transfer) => {
        const told = z.object({ link: z.string().max(200), measured: linkMeasurement })
        const { link, measured } = told.parse(request)
        this.#keep(transfer.from, link, measured)
        transfer.open({})
        transfer.socket.end()
      },
    })
    if (parts.atJoin) clock.every(lookEveryMs, () => void this.#look())
  }

  /** The links as they are, each with what was last measured and how long ago. */
  links(): readonly (LinkStatus & { measured: (LinkMeasurement & { ageMs: number }) | null })[] {
    const nowMs = this.#parts.clock.nowMs()
    return this.#parts.peers.network.links().map((status) => {
      const known = this.#known.get(keyOf(status.peer, status.link))
      const measured = known === undefined ? null : { ...known.measured, ageMs: nowMs - known.atMs }
      return { ...status, measured }
    })
  }

  /** The same for everybody: by the names of machines, alike from both ends. */
  linkFacts(): readonly LinkFact[] {
    const { state } = this.#parts.machine()
    return this.links().map(({ peer, link, measured }) => {
      const [local = '', remote = ''] = link.split('~')
      return linkFact(
        { machine: state.self.name, interface: local },
        { machine: machineName(state, peer) ?? peer, interface: remote },
        measured,
      )
    })
  }

  /** All links of this machine, one after the other: those that share a controller would steal from each other. */
  async measureAll(transferMs: number, only: MachineId | null): Promise<void> {
    const { facts, peers } = this.#parts
    const { machines } = await facts.collect()
    for (const status of peers.network.links())
      if (only === null || status.peer === only) await this.#measure(status, machines, transferMs)
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const due = this.#due()
      if (due.length === 0) return
      const { machines } = await this.#parts.facts.collect()
      for (const status of due) await this.#measure(status, machines, joinTransferMs)
    } finally {
      this.#isLooking = false
    }
  }

  #due(): readonly LinkStatus[] {
    const { peers, machine, clock } = this.#parts
    const nowMs = clock.nowMs()
    const self = machine().state.self.id
    const links = peers.network.links()
    const there = new Set(links.map(({ peer, link }) => keyOf(peer, link)))
    for (const key of this.#seenMs.keys()) if (!there.has(key)) this.#seenMs.delete(key)
    return links.filter(({ peer, link }) => {
      const key = keyOf(peer, link)
      const seenMs = this.#seenMs.get(key) ?? nowMs
      this.#seenMs.set(key, seenMs)
      const known = this.#known.get(key)
      const isDue = known === undefined || nowMs - known.atMs > restMs(known, seenMs)
      return self < peer && nowMs - seenMs >= settleMs && isDue
    })
  }

  #measure(
    status: LinkStatus,
    machines: readonly MachineFacts[],
    transferMs: number,
  ): Promise<void> {
    // Whoever asks while one is under way waits for it: two at once would measure each other.
    this.#busy = this.#busy.then(() => this.#measureNow(status, machines, transferMs))
    return this.#busy
  }

  async #measureNow(
    { peer, link }: Pick<LinkStatus, 'peer' | 'link'>,
    machines: readonly MachineFacts[],
    transferMs: number,
  ): Promise<void> {
    const { peers, machine, notes } = this.#parts
    const { state } = machine()
    const [local = '', remote = ''] = link.split('~')
    const names = { self: state.self.name, peer: machineName(state, peer) ?? peer }
    try {
      const transport = await this.#transport()
      const samples = await sampleLink(peers.bulk, { machine: peer, link, transferMs })
      const context = linkContext(machines, { ...names, local, remote }, transport.gbps)
      const measured: LinkMeasurement = {
        ...measureLink(samples, context),
        class: context.isKnown ? context.class : null,
        nominalGbps: context.nominalGbps.known ? context.nominalGbps.value : null,
        transport,
        error: null,
      }
      if (measured.slow && transferMs < surelyMs) {
        // Machines that have just met are busy; a link is called slow after a longer look.
        await this.#measureNow({ peer, link }, machines, surelyMs)
        return
      }
      this.#keep(peer, link, measured)
      if (measured.slow)
        notes.note('warn', 'a link is slow', { to: names.peer, link, cause: measured.likelyCause })
      await this.#tell(peer, `${remote}~${local}`, turnMeasure(measured))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#keep(peer, link, { ...nothing, error: reason })
    }
  }

  /** Once in the life of a daemon, when the first link is measured. */
  async #transport(): Promise<TransportLimits> {
    const { peers, machine } = this.#parts
    const { id } = machine().state.self
    this.#limits ??= await transportLimits(peers.bulk, id).catch(() => null)
    return this.#limits ?? noLimits
  }

  async #tell(peer: MachineId, link: string, measured: LinkMeasurement): Promise<void> {
    const request = { service: 'link-measured', measured, link }
    const stream = await this.#parts.peers.bulk.open(peer, request).catch(() => null)
    stream?.socket.destroy()
  }

  #keep(peer: MachineId, link: string, measured: LinkMeasurement): void {
    this.#known.set(keyOf(peer, link), { atMs: this.#parts.clock.nowMs(), measured })
  }
}

/** How long a measurement stands. Another cable may hang at a link that has come up since. */
function restMs(known: Known, seenMs: number): number {
  if (known.measured.gbps === null || known.atMs < seenMs) return retryMs
  return known.measured.slow ? slowAgainMs : againAfterMs
}

const keyOf = (peer: string, link: string): string => `${peer} ${link}`

const noLimits: TransportLimits = { gbps: null, roundTripMicros: null }

const nothing: LinkMeasurement = {
  class: null,
  nominalGbps: null,
  roundTripMicros: null,
  gbps: null,
  expectedGbps: null,
  slow: false,
  likelyCause: null,
  next: null,
  transport: noLimits,
  error: null,
}
