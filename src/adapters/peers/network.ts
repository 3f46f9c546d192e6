// The peer network over TLS: one control connection per peer and link, kept up by dialling, beating on
// each, and carrying messages on the best one that lives.
import type { ClusterMessage, Heartbeat } from '../../core/cluster/messages.ts'
import type { MachineId } from '../../core/ids.ts'
import { limits } from '../../core/limits.ts'
import type { Clock } from '../../ports/clock.ts'
import type { PeerNetwork, PeerNetworkEvents } from '../../ports/peer-network.ts'
import { parseClusterMessage, parseHeartbeat } from '../../wire/cluster-messages.ts'
import { type GenerationMessage, generationMessage } from '../../wire/generation-messages.ts'
import { type Hello, controlFrame, peerProtocol } from '../../wire/peer-frames.ts'
import type { AddressBook, DialTarget } from './address-book.ts'
import { plainAddress, sameHost, withZone } from './addresses.ts'
import type { PeerConnection } from './connection.ts'
import { Dialer } from './dialer.ts'
import type { LinkAddress } from './interfaces.ts'
import { type LinkFigures, LinkMeter } from './link-meter.ts'
import type { PeerTransport } from './transport.ts'

export type Standing = 'trusted' | 'removed' | 'stranger'

export interface TlsNetworkOptions {
  readonly self: MachineId
  readonly boot: string
  readonly incarnation: number
  readonly name: () => string
  readonly version: string
  readonly port: number
  readonly clock: Clock
  readonly transport: PeerTransport
  readonly standingOf: (machine: MachineId) => Standing
  /** Frames on connections for other purposes than control: joins and bulk. */
  readonly onFrameOther: (connection: PeerConnection, frame: unknown) => void
  /** What proves to a removed machine that it was removed: the cluster's own word, not ours. */
  readonly evidenceFor: (machine: MachineId) => Extract<ClusterMessage, { kind: 'registers' }>
  readonly onStrangerMet: (machine: MachineId, hello: Hello, host: string) => void
  readonly note: (
    level: 'info' | 'warn',
    text: string,
    about: Readonly<Record<string, unknown>>,
  ) => void
}

interface Link {
  readonly connection: PeerConnection
  readonly meter: LinkMeter
  readonly boot: string
  readonly incarnation: number
  readonly initiator: MachineId
  heardMs: number
  sequence: number
}

export interface LinkStatus extends LinkFigures {
  readonly peer: MachineId
  readonly link: string
  readonly localAddress: string
  readonly remoteAddress: string
  readonly heardAgoMs: number
}

const dialEveryMs = 250

export class TlsNetwork implements PeerNetwork {
  readonly #options: TlsNetworkOptions
  readonly dialer: Dialer
  readonly #links = new Map<MachineId, Map<string, Link>>()
  /** Refusals are told once, not at every try. */
  readonly #toldRefusals = new Map<string, string>()
  #events: PeerNetworkEvents | null = null
  #timer: (() => void) | null = null

  constructor(options: TlsNetworkOptions) {
    this.#options = options
    this.dialer = new Dialer({
      ...options,
      events: this.connectionEvents(),
      isCovered: (target, local) => this.#isCovered(target, local),
      connected: (connection) => connection.send(this.hello('control', connection.localLink)),
    })
  }

  get book(): AddressBook {
    return this.dialer.book
  }

  listen(events: PeerNetworkEvents): void {
    this.#events = events
  }

  async start(): Promise<void> {
    const { transport, port, clock } = this.#options
    await transport.listen({ port }, this.connectionEvents())
    this.#timer = clock.every(dialEveryMs, () => this.dialer.dialDue())
  }

  stop(): void {
    this.#timer?.()
    for (const links of this.#links.values())
      for (const link of links.values()) link.connection.close('stopping')
    this.#options.transport.close()
  }

  hello(purpose: Hello['purpose'], link: string): Hello {
    const { name, version, boot, incarnation, port } = this.#options
    return {
      kind: 'hello',
      protocol: peerProtocol,
      purpose,
      name: name(),
      version,
      boot,
      incarnation,
      port,
      link,
    }
  }

  connectionEvents(): ConstructorParameters<typeof PeerConnection>[0]['events'] {
    return {
      greeted: (connection, hello) => this.#greeted(connection, hello),
      frame: (connection, frame) => this.#frame(connection, frame),
      closed: (connection, reason) => this.#closed(connection, reason),
    }
  }

  beat(beat: Heartbeat): void {
    const nowMs = this.#options.clock.nowMs()
    for (const links of this.#links.values()) {
      for (const link of links.values()) {
        link.sequence += 1
        link.meter.sent(link.sequence, nowMs)
        link.connection.send({ kind: 'beat', sequence: link.sequence, beat })
      }
    }
  }

  sendCluster(to: MachineId, message: ClusterMessage): void {
    this.#best(to)?.connection.send({ kind: 'cluster', message })
  }

  sendGeneration(to: MachineId, message: GenerationMessage): boolean {
    const best = this.#best(to)
    best?.connection.send({ kind: 'generation', message })
    return best !== null
  }

  /** Where to dial for another connection over the same link; the best link when none is named. */
  routeTo(
    to: MachineId,
    link?: string,
  ): { host: string; port: number; localAddress: string } | null {
    const { self, port: ownPort } = this.#options
    const loopback = '127.0.0.1'
    if (to === self) return { host: loopback, port: ownPort, localAddress: loopback }
    const found = link === undefined ? this.#best(to) : this.#links.get(to)?.get(link)
    const port = found?.connection.hello?.port
    if (found == null || port === undefined) return null
    const localAddress = plainAddress(found.connection.socket.localAddress)
    return {
      host: remoteHost(found.connection),
      port,
      localAddress: withZone(localAddress, found.connection.localLink),
    }
  }

  links(): readonly LinkStatus[] {
    const nowMs = this.#options.clock.nowMs()
    return [...this.#links].flatMap(([peer, links]) =>
      [...links].map(([link, { connection, meter, heardMs }]) => ({
        peer,
        link,
        localAddress: plainAddress(connection.socket.localAddress),
        remoteAddress: plainAddress(connection.socket.remoteAddress),
        heardAgoMs: nowMs - heardMs,
        ...meter.figures(),
      })),
    )
  }

  /** The roster changed: whoever is no longer in it is told and shut out. */
  reviewTrust(): void {
    for (const [peer, links] of this.#links) {
      const standing = this.#options.standingOf(peer)
      if (standing === 'trusted') continue
      for (const link of links.values()) this.#refuseStanding(link.connection, standing)
    }
  }

  /** There is already a living connection over the link this address lies on. */
  #isCovered(target: DialTarget, local: LinkAddress | null): boolean {
    const all = target.peer === null ? [...this.#links.values()] : [this.#links.get(target.peer)]
    const links = all.flatMap((map) => [...(map?.values() ?? [])])
    if (target.peer === null) {
      return links.some(({ connection }) => sameHost(connection.socket.remoteAddress, target.host))
    }
    return links.some(({ connection }) => local === null || connection.localLink === local.link)
  }

  #greeted(connection: PeerConnection, hello: Hello): void {
    if (!connection.dialed) connection.send(this.hello(hello.purpose, connection.localLink))
    if (hello.purpose === 'join') return
    if (hello.purpose === 'bulk') {
      this.#greetBulk(connection)
      return
    }
    const { peer } = connection
    if (peer === this.#options.self) {
      this.#greetSelf(connection, hello)
      return
    }
    const standing = this.#options.standingOf(peer)
    if (standing !== 'trusted') {
      this.#options.onStrangerMet(peer, hello, connection.socket.remoteAddress ?? '')
      this.#refuseStanding(connection, standing)
      return
    }
    connection.trust()
    this.#adopt(connection, hello)
  }

  #greetBulk(connection: PeerConnection): void {
    const standing = this.#options.standingOf(connection.peer)
    if (standing === 'trusted') connection.trust()
    else this.#refuseStanding(connection, standing)
  }

  #greetSelf(connection: PeerConnection, hello: Hello): void {
    if (hello.boot === this.#options.boot) {
      connection.close('it is this machine itself')
      return
    }
    const reason = `two machines use the identity ${this.#options.self.slice(0, 8)}…: this one and ${hello.name} at ${connection.socket.remoteAddress ?? 'an unknown address'}; remove identity/machine.key in the home of the copy`
    this.#tellOnce('clone', reason)
    connection.refuse('cloned-identity', reason)
  }

  #refuseStanding(connection: PeerConnection, standing: Standing): void {
    const reason =
      standing === 'removed'
        ? 'this machine was removed from the cluster; it needs a new invitation'
        : 'this machine is not part of the cluster; invite it with "bushel invite"'
    const evidence = this.#options.evidenceFor(connection.peer)
    if (evidence.entries.length > 0) connection.send({ kind: 'cluster', message: evidence })
    this.#tellOnce(connection.peer, `refused ${connection.hello?.name ?? ''}: ${reason}`)
    connection.refuse(standing, reason)
  }

  #tellOnce(key: string, text: string): void {
    if (this.#toldRefusals.get(key) === text) return
    if (this.#toldRefusals.size > 1000) this.#toldRefusals.clear()
    this.#toldRefusals.set(key, text)
    this.#options.note('warn', text, {})
  }

  #adopt(connection: PeerConnection, hello: Hello): void {
    const { peer } = connection
    const links = this.#links.get(peer) ?? new Map<string, Link>()
    const initiator = connection.dialed ? this.#options.self : peer
    const existing = links.get(connection.link)
    if (this.#isClone(links, hello)) {
      const reason = `another machine with the identity ${peer.slice(0, 8)}… is connected and newer; remove identity/machine.key in the home of the copy`
      this.#tellOnce(`clone-${peer}`, reason)
      connection.refuse('cloned-identity', reason)
      return
    }
    if (existing !== undefined && !this.#replaces(existing, { boot: hello.boot, initiator })) {
      connection.refuse('duplicate', 'this link already has a connection')
      return
    }
    const nowMs = this.#options.clock.nowMs()
    const link: Link = {
      connection,
      meter: new LinkMeter(),
      boot: hello.boot,
      incarnation: hello.incarnation,
      initiator,
      heardMs: nowMs,
      sequence: 0,
    }
    links.set(connection.link, link)
    this.#links.set(peer, links)
    existing?.connection.close('replaced by a newer connection')
    this.book.add({ host: remoteHost(connection), port: hello.port, peer }, nowMs)
  }

  /** An older life that speaks while a newer one is being heard can only be a copy of the key. */
  #isClone(links: ReadonlyMap<string, Link>, hello: Hello): boolean {
    const nowMs = this.#options.clock.nowMs()
    return [...links.values()].some(
      (link) =>
        link.boot !== hello.boot &&
        link.incarnation > hello.incarnation &&
        nowMs - link.heardMs < limits.suspectAfterMs,
    )
  }

  /** Both sides must keep the same one of two: the lower id's, unless the old one is of another life or silent. */
  #replaces(old: Link, fresh: { boot: string; initiator: MachineId }): boolean {
    const silentMs = this.#options.clock.nowMs() - old.heardMs
    if (old.boot !== fresh.boot || silentMs > limits.suspectAfterMs) return true
    return fresh.initiator <= old.initiator
  }

  #frame(connection: PeerConnection, frame: unknown): void {
    const link = this.#links.get(connection.peer)?.get(connection.link)
    if (link === undefined || link.connection !== connection) {
      this.#takeRefusal(connection, frame)
      this.#options.onFrameOther(connection, frame)
      return
    }
    const parsed = controlFrame.safeParse(frame)
    // A newer peer may say things we do not know yet; they are no reason to hang up.
    if (!parsed.success) return
    const nowMs = this.#options.clock.nowMs()
    link.heardMs = nowMs
    const { data } = parsed
    if (data.kind === 'beat') {
      connection.send({ kind: 'echo', sequence: data.sequence })
      const beat = parseHeartbeat(data.beat)
      if (beat !== null) this.#events?.heartbeat(connection.peer, connection.link, beat)
    } else if (data.kind === 'echo') link.meter.echoed(data.sequence, nowMs)
    else if (data.kind === 'cluster') {
      const message = parseClusterMessage(data.message)
      if (message !== null) this.#events?.clusterMessage(connection.peer, message)
    } else if (data.kind === 'generation') {
      const message = generationMessage.safeParse(data.message)
      if (message.success) this.#events?.generationMessage(connection.peer, message.data)
    } else this.#takeRefusal(connection, data)
  }

  #takeRefusal(connection: PeerConnection, frame: unknown): void {
    const parsed = controlFrame.safeParse(frame)
    if (!parsed.success || parsed.data.kind !== 'refused' || parsed.data.code === 'duplicate')
      return
    const name = connection.hello?.name ?? connection.peer
    this.#tellOnce(`by-${connection.peer}`, `${name} refused this machine: ${parsed.data.reason}`)
  }

  #closed(connection: PeerConnection, _reason: string): void {
    const { peer } = connection
    const links = this.#links.get(peer)
    const link = links?.get(connection.link)
    if (links === undefined || link === undefined || link.connection !== connection) return
    links.delete(connection.link)
    if (links.size === 0) this.#links.delete(peer)
    this.book.retryNow((target) => target.peer === peer, this.#options.clock.nowMs())
    this.#events?.linkLost(peer, connection.link)
  }

  /** The fastest link that was heard lately; else whichever is left. */
  #best(to: MachineId): Link | null {
    const nowMs = this.#options.clock.nowMs()
    let best: Link | null = null
    let bestCost = Infinity
    for (const link of this.#links.get(to)?.values() ?? []) {
      const silent = nowMs - link.heardMs > limits.suspectAfterMs ? 1e6 : 0
      const cost = silent + (link.meter.figures().roundTripMinMs ?? 1000)
      if (cost < bestCost) {
        best = link
        bestCost = cost
      }
    }
    return best
  }
}

function remoteHost(connection: PeerConnection): string {
  return withZone(plainAddress(connection.socket.remoteAddress), connection.localLink)
}
