// TLS 1.3 between daemons, with the keys themselves as identities: certificates are self-signed, and
// both sides look at the key, never at a chain.
import { constants } from 'node:crypto'
import { type Server, type TLSSocket, connect, createServer } from 'node:tls'
import type { MachineId } from '../../core/ids.ts'
import type { Identity } from '../identity.ts'
import { selfSignedCertificate } from './certificate.ts'
import { type ConnectionEvents, PeerConnection, peerIdOf } from './connection.ts'

export class DialError extends Error {
  override readonly name = 'DialError'
}

const alpn = ['bushel/1']
const handshakeMsMax = 5000
/** A flood of half-open connections may take this many places, and one address this many of them. */
const connectionsMax = 512
const perAddressMax = 48

export class PeerTransport {
  readonly #identity: Identity
  readonly #certificate: string
  #server: Server | null = null
  readonly #perAddress = new Map<string, number>()

  constructor(identity: Identity, name: string) {
    this.#identity = identity
    this.#certificate = selfSignedCertificate(identity, name)
  }

  listen(at: { port: number; host?: string }, events: ConnectionEvents): Promise<void> {
    const server = createServer(
      {
        ...this.#credentials(),
        requestCert: true,
        handshakeTimeout: handshakeMsMax,
        // A resumed session would report the ticket's identity, not the key presented now.
        secureOptions: constants.SSL_OP_NO_TICKET,
      },
      (socket) => this.#accept(socket, events),
    )
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    server.maxConnections = connectionsMax
    server.on('connection', (socket) => {
      const address = socket.remoteAddress ?? ''
      const open = (this.#perAddress.get(address) ?? 0) + 1
      this.#perAddress.set(address, open)
      socket.once('close', () => this.#forget(address))
      if (open > perAddressMax) socket.destroy()
    })
    this.#server = server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port: at.port, host: at.host ?? '::', ipv6Only: false }, resolve)
    })
  }

  close(): void {
    this.#server?.close()
    this.#server = null
  }

  /** Dials from a given local address, so that the connection really lies on that link. */
  dial(
    to: {
      host: string
      port: number
      localAddress?: string
      expect?: MachineId
      timeoutMs: number
    },
    events: ConnectionEvents,
  ): Promise<PeerConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({
        ...this.#credentials(),
        host: to.host,
        port: to.port,
        ...(to.localAddress === undefined ? {} : { localAddress: to.localAddress }),
      })
      const where = `${to.host}:${to.port}`
      const fail = (reason: string): void => {
        clearTimeout(timer)
        socket.destroy()
        reject(new DialError(`${where}: ${reason}`))
      }
      const timer = setTimeout(() => fail('no answer in time'), to.timeoutMs)
      socket.once('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message))
      socket.once('secureConnect', () => {
        const peer = peerIdOf(socket)
        if (peer === null) return fail('it showed no machine key')
        if (to.expect !== undefined && peer !== to.expect) {
          return fail(
            `another machine (${peer.slice(0, 8)}…) answers there, not ${to.expect.slice(0, 8)}…`,
          )
        }
        clearTimeout(timer)
        socket.removeAllListeners('error')
        resolve(new PeerConnection({ socket, peer, dialed: true, events }))
      })
    })
  }

  #forget(address: string): void {
    const open = (this.#perAddress.get(address) ?? 1) - 1
    if (open > 0) this.#perAddress.set(address, open)
    else this.#perAddress.delete(address)
  }

  #accept(socket: TLSSocket, events: ConnectionEvents): void {
    const peer = peerIdOf(socket)
    if (peer === null) socket.destroy()
    // The connection announces itself with its hello; until then it is nobody's.
    else void new PeerConnection({ socket, peer, dialed: false, events })
  }

  #credentials(): object {
    return {
      key: this.#identity.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      cert: this.#certificate,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ALPNProtocols: alpn,
    }
  }
}
