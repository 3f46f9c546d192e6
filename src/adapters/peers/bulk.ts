// Bulk connections: one per transfer, apart from the control connections, so that a full pipe never makes a
// machine look dead. The dialling side asks with one frame; then the socket is a plain stream.
import type { TLSSocket } from 'node:tls'
import { z } from 'zod'
import type { MachineId } from '../../core/ids.ts'
import type { PeerConnection } from './connection.ts'
import { encodeFrame } from './frame-reader.ts'
import type { TlsNetwork } from './network.ts'
import type { PeerTransport } from './transport.ts'

export class BulkError extends Error {
  override readonly name = 'BulkError'
}

const requestFrame = z.looseObject({ kind: z.literal('bulk'), service: z.string().max(64) })
const answerFrame = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('bulk-open') }),
  z.object({ kind: z.literal('refused'), code: z.string(), reason: z.string() }),
])

export interface BulkStream {
  readonly socket: TLSSocket
  /** Bytes that came together with the opening frame. */
  readonly head: Buffer
  readonly answer: Readonly<Record<string, unknown>>
}

/** One kind of transfer that other machines may ask for. */
export interface BulkService {
  readonly name: string
  /** Answers with open() and streams, or refuses. Throwing refuses with the error's message. */
  serve(request: Readonly<Record<string, unknown>>, transfer: ServedTransfer): Promise<void>
}

export interface ServedTransfer {
  readonly from: MachineId
  readonly socket: TLSSocket
  /** Says yes, with facts for the asker, and hands over what has already arrived. */
  open(facts: Readonly<Record<string, unknown>>): Buffer
}

const dialMsMax = 3000
const answerMsMax = 15_000

export class Bulk {
  readonly #network: () => TlsNetwork
  readonly #transport: PeerTransport
  readonly #services = new Map<string, BulkService>()
  readonly #waiting = new Map<PeerConnection, (frame: unknown) => void>()

  constructor(parts: { network: () => TlsNetwork; transport: PeerTransport }) {
    this.#network = parts.network
    this.#transport = parts.transport
  }

  provide(service: BulkService): void {
    this.#services.set(service.name, service)
  }

  /** A frame on a bulk connection, on either side. */
  take(connection: PeerConnection, frame: unknown): void {
    const waiting = this.#waiting.get(connection)
    if (waiting !== undefined) {
      waiting(frame)
      return
    }
    const parsed = requestFrame.safeParse(frame)
    const service = parsed.success ? this.#services.get(parsed.data.service) : undefined
    if (!parsed.success || service === undefined) {
      connection.refuse(
        'unsupported',
        'this kind of transfer is not known here; update Bushel on this machine',
      )
      return
    }
    void this.#serve(connection, service, parsed.data)
  }

  async #serve(
    connection: PeerConnection,
    service: BulkService,
    request: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    let opened = false
    try {
      await service.serve(request, {
        from: connection.peer,
        socket: connection.socket,
        open: (facts) => {
          opened = true
          const early = connection.takeRaw()
          connection.socket.write(encodeFrame({ kind: 'bulk-open', ...facts }))
          return early
        },
      })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (opened) connection.socket.destroy()
      else connection.refuse('failed', reason)
    }
  }

  /** Opens a transfer to a machine, over a given link when one is named. */
  async open(
    to: MachineId,
    request: { service: string } & Readonly<Record<string, unknown>>,
    over?: string,
  ): Promise<BulkStream> {
    const network = this.#network()
    const route = network.routeTo(to, over)
    if (route === null) throw new BulkError(`no link to machine ${to.slice(0, 8)}… is up`)
    const connection = await this.#transport.dial(
      { ...route, expect: to, timeoutMs: dialMsMax },
      network.connectionEvents(),
    )
    connection.trust()
    const answered = new Promise<BulkStream>((resolve, reject) => {
      const timer = setTimeout(() => reject(new BulkError('no answer in time')), answerMsMax)
      const end = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(connection)
      }
      connection.socket.once('close', () => {
        end()
        reject(new BulkError('the other machine closed the connection'))
      })
      this.#waiting.set(connection, (frame) => {
        end()
        const answer = answerFrame.safeParse(frame)
        if (!answer.success) reject(new BulkError('the answer was not understood'))
        else if (answer.data.kind === 'refused') reject(new BulkError(answer.data.reason))
        else resolve({ socket: connection.socket, head: connection.takeRaw(), answer: answer.data })
      })
    })
    connection.send(network.hello('bulk', connection.localLink))
    connection.send({ kind: 'bulk', ...request })
    return answered
  }
}
