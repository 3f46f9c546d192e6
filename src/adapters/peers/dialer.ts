// Keeps dialling the addresses that are due, each from our own address on its link, so that a connection
// really lies on the link it is counted for.
import type { MachineId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import { AddressBook, type DialTarget } from './address-book.ts'
import { withZone } from './addresses.ts'
import type { ConnectionEvents, PeerConnection } from './connection.ts'
import { type LinkAddress, linkAddresses, localAddressFor } from './interfaces.ts'
import type { PeerTransport } from './transport.ts'

export interface DialerOptions {
  readonly self: MachineId
  readonly clock: Clock
  readonly transport: PeerTransport
  readonly standingOf: (machine: MachineId) => string
  readonly events: ConnectionEvents
  readonly isCovered: (target: DialTarget, local: LinkAddress | null) => boolean
  readonly connected: (connection: PeerConnection) => void
}

const dialMsMax = 2500
/** The hello that follows decides; until then the address is not tried again. */
const settleMs = 1000

export class Dialer {
  readonly book = new AddressBook()
  readonly #options: DialerOptions
  readonly #dialing = new Set<string>()

  constructor(options: DialerOptions) {
    this.#options = options
  }

  dialDue(): void {
    const { clock, self, standingOf, isCovered } = this.#options
    const mine = linkAddresses()
    for (const target of this.book.due(clock.nowMs())) {
      if (target.peer === self) continue
      if (target.peer !== null && standingOf(target.peer) !== 'trusted') continue
      const key = `${target.host}|${target.port}`
      const local = localAddressFor(target.host, mine)
      if (this.#dialing.has(key) || isCovered(target, local)) continue
      this.#dialing.add(key)
      void this.#dial(target, local).finally(() => this.#dialing.delete(key))
    }
  }

  async #dial(target: DialTarget, local: LinkAddress | null): Promise<void> {
    const { transport, clock, events, connected } = this.#options
    const { host, port, peer } = target
    try {
      const connection = await transport.dial(
        {
          host,
          port,
          timeoutMs: dialMsMax,
          ...(local === null ? {} : { localAddress: withZone(local.address, local.link) }),
          ...(peer === null ? {} : { expect: peer }),
        },
        events,
      )
      this.book.succeeded(target)
      this.book.postpone(target, clock.nowMs() + settleMs)
      connected(connection)
    } catch {
      this.book.failed(target, clock.nowMs())
    }
  }
}
