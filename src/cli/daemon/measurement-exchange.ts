// Keeps what was measured on every machine of the cluster: whoever coordinates next plans with the same figures.
import type { Measurements } from '../../core/plan/probe/apply.ts'
import type { Machine } from '../../runtime/machine.ts'
import {
  mergeMeasurements,
  newestMs,
  parseMeasurements,
  readMeasurements,
  writeMeasurements,
} from '../probe/measurement-file.ts'
import { askEveryPeer } from './ask-peers.ts'
import type { Peers } from './peers.ts'

export class MeasurementExchange {
  readonly #parts: { machine: () => Machine; peers: Peers; home: string }

  constructor(parts: { machine: () => Machine; peers: Peers; home: string }) {
    this.#parts = parts
    parts.peers.bulk.provide({
      name: 'measured',
      serve: async (request, transfer) => {
        await this.#keep(parseMeasurements(request['measured']))
        transfer.open({})
        transfer.socket.end()
      },
    })
  }

  /** Here and on every machine that is heard; which of them could not be told, and why. */
  async share(measured: Measurements): Promise<readonly string[]> {
    await this.#keep(measured)
    const version = 1
    const request = { service: 'measured', measured: { version, ...measured } }
    const { silent } = await askEveryPeer(this.#parts, request)
    return silent.map(({ name, reason }) => `${name} was not told what was measured: ${reason}`)
  }

  async #keep(measured: Measurements): Promise<void> {
    const { home } = this.#parts
    await writeMeasurements(home, mergeMeasurements(readMeasurements(home), measured))
    this.#parts.machine().post({ kind: 'measurements-taken', atMs: newestMs(measured) })
  }
}
