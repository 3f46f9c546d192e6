// Takes the samples of one link, through the peers' own transport: tiny round trips, and bulk in each direction
// counted where it arrives.
import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { z } from 'zod'
import type { MachineId } from '../../core/ids.ts'
import type { LinkSamples, Transfer } from '../../core/links/measured-link.ts'
import type { Bulk, BulkService } from './bulk.ts'
import { FrameReader, encodeFrame } from './frame-reader.ts'

const requestSchema = z.looseObject({ milliseconds: z.number().min(20).max(10_000) })
const countedSchema = z.object({ bytes: z.number().min(0), micros: z.number().min(0) })
const chunkBytes = 256 * 1024
const roundTrips = 30
const roundTripBytes = 32
const transfersEach = 3
const ceilingMs = 60
/** A link that is far too slow must not hold up the others. */
const patienceMs = 5000

const echo: BulkService = {
  name: 'probe-echo',
  async serve(_request, transfer) {
    const { socket } = transfer
    const early = transfer.open({})
    if (early.length > 0) socket.write(early)
    socket.on('data', (chunk: Buffer) => socket.write(chunk))
    await once(socket, 'close')
  },
}

/** Sends zeros for as long as it was asked, as fast as the link takes them. */
const source: BulkService = {
  name: 'probe-source',
  async serve(request, transfer) {
    const { milliseconds } = requestSchema.parse(request)
    transfer.open({})
    // Whoever counts hangs up when it has enough.
    const endMs = performance.now() + milliseconds + patienceMs
    await pour(transfer.socket, () => performance.now() < endMs)
    transfer.socket.destroy()
  },
}

/** Counts what comes for as long as it was asked, and says how much it was. */
const sink: BulkService = {
  name: 'probe-sink',
  async serve(request, transfer) {
    const { milliseconds } = requestSchema.parse(request)
    transfer.open({})
    const counted = await countArrivals(transfer.socket, milliseconds)
    transfer.socket.write(encodeFrame(counted))
    // What is still on its way is let in, or the answer would be lost with it.
    transfer.socket.resume()
    await Promise.race([once(transfer.socket, 'close'), sleep(patienceMs)])
    transfer.socket.destroy()
  },
}

export const probeServices: readonly BulkService[] = [echo, source, sink]

export async function sampleLink(
  bulk: Bulk,
  to: { readonly machine: MachineId; readonly link: string; readonly transferMs: number },
): Promise<LinkSamples> {
  const roundTripMicros = await takeRoundTrips(bulk, to)
  const forward: Transfer[] = []
  const backward: Transfer[] = []
  for (let at = 0; at < transfersEach; at++) {
    forward.push(await sendFor(bulk, to))
    backward.push(await receiveFor(bulk, to))
  }
  return { roundTripMicros, forward, backward }
}

type Target = Omit<Parameters<typeof sampleLink>[1], 'link'> & { readonly link?: string }

export interface TransportLimits {
  readonly gbps: number | null
  readonly roundTripMicros: number | null
}

/**
 * What this transport reaches without any link. Both ends share one processor here, so it errs towards less: a
 * link is never called slow because encryption is.
 */
export async function transportLimits(bulk: Bulk, self: MachineId): Promise<TransportLimits> {
  const to = { machine: self, transferMs: ceilingMs }
  const rates: number[] = []
  for (let at = 0; at < transfersEach; at++) {
    const { bytes, micros } = await sendFor(bulk, to)
    if (micros > 0) rates.push((bytes * 8) / micros / 1000)
  }
  const trips = await takeRoundTrips(bulk, to)
  return {
    gbps: rates.length === 0 ? null : Math.max(...rates),
    roundTripMicros: trips.toSorted((a, b) => a - b)[Math.floor(trips.length / 2)] ?? null,
  }
}

const open = (bulk: Bulk, service: string, { machine, link, transferMs }: Target) =>
  bulk.open(machine, { service, milliseconds: transferMs }, link)

async function takeRoundTrips(bulk: Bulk, to: Target): Promise<readonly number[]> {
  const { socket } = await open(bulk, 'probe-echo', to)
  const micros: number[] = []
  const word = Buffer.alloc(roundTripBytes)
  try {
    for (let at = 0; at < roundTrips; at++) {
      const sentMs = performance.now()
      socket.write(word)
      for (let heard = 0; heard < roundTripBytes;) {
        const came: unknown = await Promise.race([once(socket, 'data'), sleep(patienceMs)])
        if (!Array.isArray(came)) return micros
        heard += (came[0] as Buffer).length
      }
      micros.push((performance.now() - sentMs) * 1000)
    }
  } finally {
    socket.destroy()
  }
  return micros
}

async function receiveFor(bulk: Bulk, to: Target): Promise<Transfer> {
  const { socket } = await open(bulk, 'probe-source', to)
  const counted = await countArrivals(socket, to.transferMs)
  socket.destroy()
  return counted
}

async function sendFor(bulk: Bulk, to: Target): Promise<Transfer> {
  const { socket, head } = await open(bulk, 'probe-sink', to)
  const reader = new FrameReader(1024)
  let answer: Buffer | undefined = reader.push(head)[0]
  socket.on('data', (chunk: Buffer) => (answer ??= reader.push(chunk)[0]))
  const endMs = performance.now() + to.transferMs + patienceMs
  await pour(socket, () => answer === undefined && performance.now() < endMs)
  socket.destroy()
  if (answer === undefined) throw new Error('the other machine did not say what arrived')
  return countedSchema.parse(JSON.parse(answer.toString('utf8')))
}

async function pour(socket: TLSSocket, goesOn: () => boolean): Promise<void> {
  const chunk = Buffer.alloc(chunkBytes)
  while (goesOn() && !socket.destroyed) {
    // Without a drain the answer of the other side could never be heard.
    if (socket.write(chunk)) await new Promise((resolve) => setImmediate(resolve))
    else await Promise.race([once(socket, 'drain'), once(socket, 'close'), sleep(patienceMs)])
  }
}

/**
 * From the end of a warm-up quarter, in which windows open and shapers spend their credit. The clock starts with
 * the first arrival and runs on until something was counted: on a busy machine the beginning takes its time.
 */
async function countArrivals(socket: TLSSocket, milliseconds: number): Promise<Transfer> {
  let startedMs: number | null = null
  let firstMs: number | null = null
  let lastMs = 0
  let bytes = 0
  const counted = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      lastMs = performance.now()
      startedMs ??= lastMs
      if (lastMs - startedMs < milliseconds / 4) return
      if (firstMs === null) firstMs = lastMs
      else bytes += chunk.length
      if (lastMs - startedMs >= milliseconds && bytes > 0) resolve()
    })
  })
  await Promise.race([counted, once(socket, 'close'), sleep(milliseconds + patienceMs)])
  socket.removeAllListeners('data')
  return { bytes, micros: Math.round((lastMs - (firstMs ?? lastMs)) * 1000) }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms).unref())
