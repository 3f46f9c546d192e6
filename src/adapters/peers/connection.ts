// One TLS connection to another daemon: hellos both ways, then frames. It knows who is on the other end;
// whether that one is trusted is decided by its owner.
import { type TLSSocket } from 'node:tls'
import type { MachineId } from '../../core/ids.ts'
import { limits } from '../../core/limits.ts'
import { type Hello, helloFrame, peerProtocol, peerProtocolOldest } from '../../wire/peer-frames.ts'
import { idOfPublicKey } from '../identity.ts'
import { FrameReader, encodeFrame } from './frame-reader.ts'
import { linkOf } from './interfaces.ts'

export interface ConnectionEvents {
  /** The other side has said who it is and what it wants; answer with refuse() or go on. */
  greeted(connection: PeerConnection, hello: Hello): void
  frame(connection: PeerConnection, frame: unknown): void
  closed(connection: PeerConnection, reason: string): void
}

const strangerFrameBytesMax = 65_536
const helloMsMax = 5000

export class PeerConnection {
  readonly socket: TLSSocket
  readonly peer: MachineId
  readonly dialed: boolean
  readonly localLink: string
  hello: Hello | null = null
  readonly #events: ConnectionEvents
  readonly #reader = new FrameReader(strangerFrameBytesMax)
  readonly #helloTimer: NodeJS.Timeout
  #closed = false
  #raw = false

  constructor(about: {
    socket: TLSSocket
    peer: MachineId
    dialed: boolean
    events: ConnectionEvents
  }) {
    this.socket = about.socket
    this.peer = about.peer
    this.dialed = about.dialed
    this.#events = about.events
    this.localLink = linkOf(about.socket.localAddress ?? '') ?? 'unknown'
    this.socket.setNoDelay(true)
    this.#helloTimer = setTimeout(() => this.close('it said no hello in time'), helloMsMax)
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.socket.on('error', (error: NodeJS.ErrnoException) =>
      this.close(error.code ?? error.message),
    )
    this.socket.on('close', () => this.close('the connection was closed'))
  }

  get link(): string {
    return this.hello === null ? this.localLink : `${this.localLink}~${this.hello.link}`
  }

  /** Trusted peers may send whole model lists; strangers only short words. */
  trust(): void {
    this.#reader.bytesMax = limits.peerFrameBytesMax
  }

  send(frame: unknown): void {
    if (!this.#closed) this.socket.write(encodeFrame(frame))
  }

  /** Says why, then closes. */
  refuse(code: string, reason: string): void {
    if (this.#closed) return
    this.send({ kind: 'refused', code, reason })
    this.socket.end()
    this.close(`refused: ${reason}`)
  }

  close(reason: string): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#helloTimer)
    // The last frame may still be on its way out; the socket is cut when it is.
    setTimeout(() => this.socket.destroy(), 200).unref()
    this.#events.closed(this, reason)
  }

  get isOpen(): boolean {
    return !this.#closed
  }

  /** Hands the socket over as a plain stream; bytes that came early are returned. */
  takeRaw(): Buffer {
    this.#raw = true
    clearTimeout(this.#helloTimer)
    this.socket.removeAllListeners('data')
    return this.#reader.takeRest()
  }

  #take(chunk: Buffer): void {
    if (this.#closed) return
    try {
      for (const bytes of this.#reader.push(chunk)) {
        if (this.#closed) return
        const frame: unknown = JSON.parse(bytes.toString('utf8'))
        if (this.hello === null) this.#greet(frame)
        else this.#events.frame(this, frame)
        if (this.#raw) return
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.refuse('malformed', `a frame was not understood: ${reason}`)
    }
  }

  #greet(frame: unknown): void {
    const parsed = helloFrame.safeParse(frame)
    if (!parsed.success) {
      this.refuse('malformed', 'the first frame must be a hello')
      return
    }
    const hello = parsed.data
    if (hello.protocol < peerProtocolOldest) {
      this.refuse(
        'protocol',
        `protocol ${hello.protocol} is too old (${peerProtocolOldest} to ${peerProtocol} are spoken here); update Bushel there`,
      )
      return
    }
    clearTimeout(this.#helloTimer)
    this.hello = hello
    this.#events.greeted(this, hello)
  }
}

/** Who is on the other end, by the key it has proven to hold; null without a certificate. */
export function peerIdOf(socket: TLSSocket): MachineId | null {
  const key = socket.getPeerX509Certificate()?.publicKey
  return key?.asymmetricKeyType === 'ed25519' ? idOfPublicKey(key) : null
}

/** The other side's public key, to be written into the roster. */
export function peerKeyOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey
  return key === undefined ? '' : key.export({ type: 'spki', format: 'der' }).toString('base64')
}
