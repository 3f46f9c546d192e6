// mDNS on every interface, IPv4 and IPv6, each on a socket of its own: the common libraries speak on one
// interface only and so never see a machine on the second cable.
import { type RemoteInfo, type Socket, createSocket } from 'node:dgram'
import type { CancelTimer, Clock } from '../../ports/clock.ts'
import type { Discovery, Sighting } from '../../ports/discovery.ts'
import { type LinkAddress, linkAddresses, sameSubnet } from '../peers/interfaces.ts'
import { type Announcement, decode, encodeAnnouncement, encodeQuery } from './service-record.ts'

const mdnsPort = 5353
const pollMs = 500
const announceEveryMs = 2000
/** A flood of packets is not read faster than this; honest neighbours say little. */
const packetsPerSecondMax = 200

interface Ear {
  readonly on: LinkAddress
  readonly socket: Socket
  ready: boolean
}

export class MdnsDiscovery implements Discovery {
  readonly #clock: Clock
  readonly #announcement: () => Announcement
  readonly #ears = new Map<string, Ear>()
  #timers: CancelTimer[] = []
  #found: (sighting: Sighting) => void = () => undefined
  #packets = 0

  constructor(options: { clock: Clock; announcement: () => Announcement }) {
    this.#clock = options.clock
    this.#announcement = options.announcement
  }

  start(found: (sighting: Sighting) => void): void {
    this.#found = found
    this.#watch()
    this.#timers = [
      this.#clock.every(pollMs, () => this.#watch()),
      this.#clock.every(announceEveryMs, () => this.#sendAll()),
      this.#clock.every(1000, () => (this.#packets = 0)),
    ]
  }

  stop(): void {
    for (const cancel of this.#timers) cancel()
    const goodbye = encodeAnnouncement(this.#announcement(), { goodbye: true })
    for (const ear of this.#ears.values()) {
      this.#send(ear, goodbye)
      setTimeout(() => ear.socket.close(), 20).unref()
    }
    this.#ears.clear()
  }

  /** Interfaces come and go; each address gets an ear of its own and loses it with the address. */
  #watch(): void {
    const now = new Map(
      linkAddresses().map((address) => [`${address.link}|${address.address}`, address]),
    )
    for (const [key, ear] of this.#ears) {
      if (now.has(key)) continue
      this.#ears.delete(key)
      ear.socket.close()
    }
    for (const [key, address] of now) if (!this.#ears.has(key)) this.#open(key, address)
  }

  #open(key: string, on: LinkAddress): void {
    const six = on.family === 'IPv6'
    const socket = createSocket({ type: six ? 'udp6' : 'udp4', reuseAddr: true, ipv6Only: six })
    const ear: Ear = { on, socket, ready: false }
    this.#ears.set(key, ear)
    const lose = (): void => {
      if (this.#ears.get(key) !== ear) return
      // A fresh link-local address is not usable for a second or two; the next look tries again.
      this.#ears.delete(key)
      try {
        socket.close()
      } catch {
        // never bound
      }
    }
    socket.on('error', lose)
    socket.on('message', (bytes, from) => this.#hear(ear, bytes, from))
    socket.bind(mdnsPort, six ? '::' : '0.0.0.0', () => {
      try {
        const own = six ? `::%${on.link}` : on.address
        socket.addMembership(six ? 'ff02::fb' : '224.0.0.251', own)
        socket.setMulticastInterface(own)
        socket.setMulticastTTL(255)
        socket.setMulticastLoopback(false)
        socket.unref()
        ear.ready = true
        this.#send(ear, encodeQuery())
        this.#send(ear, encodeAnnouncement(this.#announcement()))
      } catch {
        lose()
      }
    })
  }

  #sendAll(): void {
    const announcement = encodeAnnouncement(this.#announcement())
    for (const ear of this.#ears.values()) this.#send(ear, announcement)
  }

  #send({ on, socket, ready }: Ear, bytes: Buffer): void {
    if (!ready) return
    const group = on.family === 'IPv6' ? `ff02::fb%${on.link}` : '224.0.0.251'
    // A lost announcement is repeated; an interface that cannot send is noticed by the next look.
    socket.send(bytes, mdnsPort, group, () => undefined)
  }

  #hear(ear: Ear, bytes: Buffer, from: RemoteInfo): void {
    this.#packets += 1
    if (this.#packets > packetsPerSecondMax || bytes.length > 4000) return
    if (!isFromLink(ear.on, from.address)) return
    const heard = decode(bytes)
    if (heard.kind === 'query') this.#send(ear, encodeAnnouncement(this.#announcement()))
    if (heard.kind !== 'sightings') return
    const own = this.#announcement().id
    for (const sighting of heard.sightings) {
      if (sighting.machine !== own)
        this.#found({ ...sighting, host: from.address, link: ear.on.link })
    }
  }
}

/** Every socket on the mDNS port hears all interfaces; only what came over this one counts here. */
function isFromLink(on: LinkAddress, from: string): boolean {
  if (on.family === 'IPv6') return from.endsWith(`%${on.link}`)
  return sameSubnet(on.address, from, on.netmask)
}
