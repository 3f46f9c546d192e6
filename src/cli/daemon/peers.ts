// The cluster side of a daemon: transport, discovery, admission, and what they tell the loop.
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Identity } from '../../adapters/identity.ts'
import { cryptoEntropy } from '../../adapters/crypto-entropy.ts'
import { MdnsDiscovery } from '../../adapters/discovery/mdns.ts'
import { Admissions, type Newcomer } from '../../adapters/peers/admission.ts'
import { Bulk } from '../../adapters/peers/bulk.ts'
import { linkAddresses } from '../../adapters/peers/interfaces.ts'
import { Invitations } from '../../adapters/peers/invitations.ts'
import { type Standing, TlsNetwork } from '../../adapters/peers/network.ts'
import { PeerTransport } from '../../adapters/peers/transport.ts'
import { systemClock } from '../../adapters/system-clock.ts'
import {
  type RosterEntry,
  isMachineRemoved,
  registerKeys,
  roster,
} from '../../core/cluster/desired.ts'
import type { Registers } from '../../core/cluster/registers.ts'
import type { SelfState } from '../../core/cluster/state.ts'
import type { MachineId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import { writeFileAtomically } from '../../files/atomic-file.ts'
import type { Sighting } from '../../ports/discovery.ts'
import type { Machine, Notes } from '../../runtime/machine.ts'
import { UserError } from '../command.ts'
import type { Settings } from '../settings.ts'
import { farewellFor, saveFarewell } from './farewell.ts'

export interface PeersParts {
  readonly settings: Settings
  readonly identity: Identity
  readonly self: SelfState
  readonly machine: () => Machine
  readonly notes: Notes
}

/** Strangers seen lately, for "nearby"; bounded, because anyone may announce anything. */
const nearbyMax = 256
const nearbyMs = 30_000
const addressesSaveEveryMs = 10_000

export class Peers {
  readonly network: TlsNetwork
  readonly admissions: Admissions
  readonly bulk: Bulk
  readonly invitations: Invitations
  readonly #parts: PeersParts
  readonly #discovery: MdnsDiscovery | null
  readonly #nearby = new Map<MachineId, Sighting & { seenMs: number }>()

  constructor(parts: PeersParts) {
    this.#parts = parts
    const { settings, identity, self, notes } = parts
    const transport = new PeerTransport(identity, self.id)
    this.invitations = new Invitations(systemClock)
    this.network = new TlsNetwork({
      self: self.id,
      boot: self.boot,
      incarnation: self.incarnation,
      name: () => parts.machine().state.self.name,
      version: self.version,
      port: this.port,
      clock: systemClock,
      transport,
      standingOf: (id) => this.#standingOf(id),
      onFrameOther: (connection, frame) => {
        const purpose = connection.hello?.purpose
        if (purpose === 'join') this.admissions.take(connection, frame)
        else if (purpose === 'bulk') this.bulk.take(connection, frame)
      },
      evidenceFor: (id) => {
        const all = [...parts.machine().state.registers]
        const entries = all.filter(([key]) => key.startsWith(`roster/${id}/`))
        return { kind: 'registers', entries: [...entries, ...farewellFor(this.#home, id)] }
      },
      onStrangerMet: (id, hello, host) =>
        this.#see({
          machine: id,
          name: hello.name,
          version: hello.version,
          host,
          port: hello.port,
          link: hello.link,
        }),
      note: (level, text, about) => notes.note(level, text, about),
    })
    this.bulk = new Bulk({ network: () => this.network, transport })
    this.admissions = new Admissions({
      network: () => this.network,
      transport,
      invitations: this.invitations,
      admit: (newcomer) => this.#admit(newcomer),
      note: (text, about) => notes.note('info', text, about),
    })
    this.#discovery = settings.discovery
      ? new MdnsDiscovery({
          clock: systemClock,
          announcement: () => ({
            id: self.id,
            name: parts.machine().state.self.name,
            version: self.version,
            port: this.port,
          }),
        })
      : null
  }

  /** Peers speak on the port after the API's. */
  get port(): number {
    return this.#parts.settings.port + 1
  }

  async start(): Promise<void> {
    const { settings } = this.#parts
    try {
      await this.network.start()
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      const reason =
        code === 'EADDRINUSE'
          ? 'it is taken by another program; choose another with --port'
          : message
      throw new UserError(`Cannot listen for other machines on port ${this.port}: ${reason}`)
    }
    for (const peer of settings.peers) this.#addStatic(peer)
    this.#loadAddresses()
    this.#discovery?.start((sighting) => this.#see(sighting))
    systemClock.every(addressesSaveEveryMs, () => void this.#saveAddresses())
  }

  async stop(): Promise<void> {
    this.#discovery?.stop()
    this.network.stop()
    await this.#saveAddresses()
  }

  /** Machines of nobody's cluster that were seen lately. */
  nearby(): readonly Sighting[] {
    const nowMs = systemClock.nowMs()
    for (const [id, seen] of this.#nearby)
      if (nowMs - seen.seenMs > nearbyMs) this.#nearby.delete(id)
    return [...this.#nearby.values()].filter((seen) => this.#standingOf(seen.machine) !== 'trusted')
  }

  hostsOf(id: MachineId): readonly { host: string; port: number }[] {
    const seen = this.#nearby.get(id)
    const known = this.network.book.of(id).map(({ host, port }) => ({ host, port }))
    return seen === undefined ? known : [{ host: seen.host, port: seen.port }, ...known]
  }

  ownAddresses(): readonly string[] {
    return linkAddresses().flatMap((address) =>
      address.family === 'IPv4' ? [address.address] : [],
    )
  }

  /** A cluster begins when its first machine writes itself into its own roster. */
  async found(): Promise<void> {
    const { machine, identity } = this.#parts
    const { state } = machine()
    if (roster(state.registers).has(state.self.id)) return
    const publicKey = identity.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    await this.#writeRoster({
      machine: state.self.id,
      name: state.self.name,
      publicKey,
      addresses: [...this.ownAddresses()],
    })
  }

  /** Just admitted: whoever welcomed us and everyone in the roster is worth dialling now. */
  welcomed(by: MachineId): void {
    const nowMs = systemClock.nowMs()
    for (const { host, port } of this.hostsOf(by))
      this.network.book.add({ host, port, peer: by }, nowMs)
    this.#loadAddresses()
    // Seeing moves an entry to the end, so the walk goes over a copy.
    const all = [...this.#nearby.values()]
    for (const seen of all) this.#see(seen)
  }

  /** Keeps what the machine wanted so far, so that nothing is lost by joining or leaving. */
  archiveState(reason: string): void {
    const folder = join(this.#parts.settings.home, 'state')
    const journal = join(folder, 'journal.json')
    if (!existsSync(journal)) return
    const archive = join(folder, 'archive')
    mkdirSync(archive, { recursive: true })
    const file = join(archive, `${new Date().toISOString().replaceAll(':', '-')}-${reason}.json`)
    copyFileSync(journal, file)
    this.#parts.notes.note('info', 'the desired state so far was archived', { file })
  }

  /** Who did not hear that this machine left is told when it next calls. */
  rememberFarewell(registers: Registers): void {
    saveFarewell(this.#home, { self: this.#parts.machine().state.self.id, registers })
  }

  get #home(): string {
    return this.#parts.settings.home
  }

  #standingOf(id: MachineId): Standing {
    const { registers } = this.#parts.machine().state
    if (roster(registers).has(id)) return 'trusted'
    return isMachineRemoved(registers, id) ? 'removed' : 'stranger'
  }

  #see(sighting: Sighting): void {
    const nowMs = systemClock.nowMs()
    this.#nearby.delete(sighting.machine)
    if (this.#nearby.size >= nearbyMax) {
      const [oldest] = this.#nearby.keys()
      if (oldest !== undefined) this.#nearby.delete(oldest)
    }
    this.#nearby.set(sighting.machine, { ...sighting, seenMs: nowMs })
    if (this.#standingOf(sighting.machine) !== 'trusted') return
    this.network.book.add(
      { host: sighting.host, port: sighting.port, peer: sighting.machine },
      nowMs,
    )
  }

  async #admit(newcomer: Newcomer): Promise<readonly unknown[]> {
    await this.found()
    const { machine } = this.#parts
    const taken = new Set(
      [...roster(machine().state.registers).values()].map((entry) => entry.name),
    )
    const [address = ''] = newcomer.address.split('|')
    await this.#writeRoster({
      machine: newcomer.machine,
      name: uniqueName(newcomer.name, taken),
      publicKey: newcomer.publicKey,
      addresses: [address],
    })
    return [...machine().state.registers]
  }

  #writeRoster(entry: RosterEntry): Promise<void> {
    const key = registerKeys.roster(entry.machine, cryptoEntropy.hex(6))
    return new Promise((resolve) => {
      this.#parts.machine().write([{ key, value: entry as unknown as JsonValue }], resolve)
    })
  }

  #addStatic(text: string): void {
    const match = /^\[?(.+?)\]?(?::(\d+))?$/.exec(text)
    const host = match?.[1] ?? text
    // A bare IPv6 address has colons of its own; only a bracketed one carries a port.
    const isBareSix = text.includes('::') && !text.startsWith('[')
    const port = isBareSix || match?.[2] === undefined ? this.port : Number(match[2])
    this.network.book.add({ host: isBareSix ? text : host, port, peer: null }, systemClock.nowMs())
  }

  get #addressFile(): string {
    return join(this.#parts.settings.home, 'state', 'addresses.json')
  }

  #loadAddresses(): void {
    const nowMs = systemClock.nowMs()
    try {
      const saved = JSON.parse(readFileSync(this.#addressFile, 'utf8')) as Record<
        string,
        { host: string; port: number }[]
      >
      for (const [id, targets] of Object.entries(saved)) {
        for (const { host, port } of targets)
          this.network.book.add({ host, port, peer: id as MachineId }, nowMs)
      }
    } catch {
      // none were saved
    }
    for (const entry of roster(this.#parts.machine().state.registers).values()) {
      for (const host of entry.addresses)
        this.network.book.add({ host, port: this.port, peer: entry.machine }, nowMs)
    }
  }

  async #saveAddresses(): Promise<void> {
    const saved: Record<string, { host: string; port: number }[]> = {}
    for (const id of roster(this.#parts.machine().state.registers).keys()) {
      const targets = this.network.book.of(id).slice(-8)
      if (targets.length > 0) saved[id] = targets.map(({ host, port }) => ({ host, port }))
    }
    await writeFileAtomically(this.#addressFile, JSON.stringify(saved)).catch(() => undefined)
  }
}

/** Follows the roster: who was taken out is shut out, and if it was us, we are on our own again. */
export function watchBelonging(machine: Machine, peers: Peers): void {
  let seen = machine.state.registers
  machine.subscribe((state) => {
    if (state.registers === seen) return
    seen = state.registers
    if (isMachineRemoved(state.registers, state.self.id)) {
      peers.archiveState('removed')
      peers.rememberFarewell(state.registers)
      machine.post({ kind: 'registers-replace', registers: new Map() })
    }
    peers.network.reviewTrust()
  })
}

export function uniqueName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name
  for (let number = 2; ; number++) if (!taken.has(`${name}-${number}`)) return `${name}-${number}`
}
