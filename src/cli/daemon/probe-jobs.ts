// Measuring processes wherever they are wanted: on this machine, or on another one that is asked to run one.
import { createInterface } from 'node:readline'
import { ProbeFailedError, type ProbeProgram, runProbe } from '../../adapters/probe-process.ts'
import { freeEndpoint } from '../../adapters/peers/rank-endpoints.ts'
import type { RankEndpoints } from '../../adapters/peers/rank-endpoints.ts'
import type { MachineId } from '../../core/ids.ts'
import {
  type ProbeJob,
  type ProbePlace,
  probeAddress,
  probeJob,
  probePlace,
} from '../../wire/probe-job.ts'
import { askPeer } from './ask-peers.ts'
import type { Peers } from './peers.ts'

export interface ProbeJobsParts {
  readonly self: () => MachineId
  readonly peers: Peers
  readonly endpoints: RankEndpoints
  readonly program: ProbeProgram
}

interface Address {
  readonly host: string
  readonly port: number
}

export class ProbeJobs {
  readonly #parts: ProbeJobsParts

  constructor(parts: ProbeJobsParts) {
    this.#parts = parts
    const { bulk } = parts.peers
    bulk.provide({
      name: 'probe',
      serve: async (request, transfer) => {
        const job = probeJob.parse(request['job'])
        const { socket } = transfer
        const hungUp = new AbortController()
        socket.once('close', () => hungUp.abort())
        transfer.open({})
        try {
          for await (const line of runProbe(parts.program, job, hungUp.signal))
            socket.write(`${line}\n`)
        } catch (error) {
          socket.write(`${JSON.stringify({ failed: messageOf(error) })}\n`)
        }
        socket.end()
      },
    })
    bulk.provide({
      name: 'probe-place',
      serve: async (request, transfer) => {
        transfer.open({ ...(await this.#ownPlace(probePlace.parse(request))) })
        transfer.socket.end()
      },
    })
  }

  /** An address and a free port of that machine, as a rank of a group there would get them. */
  async place(machine: MachineId, place: ProbePlace): Promise<Address> {
    if (machine === this.#parts.self()) return this.#ownPlace(place)
    const request = { service: 'probe-place', ...place }
    return probeAddress.parse(await askPeer(this.#parts.peers, machine, request))
  }

  #ownPlace({ facing, address }: ProbePlace): Promise<Address> {
    if (address !== null) return freeEndpoint(address)
    return this.#parts.endpoints.facing(facing as MachineId)
  }

  /** The one document that a measuring process prints. */
  async only(machine: MachineId, job: ProbeJob, signal: AbortSignal): Promise<unknown> {
    let last = ''
    for await (const line of this.lines(machine, job, signal)) last = line
    if (last === '') throw new ProbeFailedError('it printed nothing')
    return JSON.parse(last)
  }

  async *lines(
    machine: MachineId,
    job: ProbeJob,
    signal: AbortSignal,
  ): AsyncGenerator<string, void, undefined> {
    if (machine === this.#parts.self()) {
      yield* runProbe(this.#parts.program, job, signal)
      return
    }
    const { socket, head } = await this.#parts.peers.bulk.open(machine, { service: 'probe', job })
    const hangUp = (): void => void socket.destroy()
    signal.addEventListener('abort', hangUp)
    if (signal.aborted) hangUp()
    if (head.length > 0) socket.unshift(head)
    try {
      for await (const line of createInterface({ input: socket })) {
        const { failed } = JSON.parse(line) as { failed?: string }
        if (failed !== undefined) throw new ProbeFailedError(failed)
        yield line
      }
      if (signal.aborted) throw new ProbeFailedError('it was given up')
    } finally {
      signal.removeEventListener('abort', hangUp)
      hangUp()
    }
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error)
