// Measures what a link carries: bytes are sent for a while and counted where they arrive.
import { once } from 'node:events'
import { z } from 'zod'
import type { MachineId } from '../../core/ids.ts'
import type { Bulk, BulkService } from './bulk.ts'

const requestSchema = z.object({ milliseconds: z.number().min(50).max(10_000) })
const chunkBytes = 256 * 1024

/** Sends zeros for as long as it was asked, as fast as the link takes them. */
export const bulkSource: BulkService = {
  name: 'probe-source',
  async serve(request, transfer) {
    const { milliseconds } = requestSchema.parse({ milliseconds: request['milliseconds'] })
    transfer.open({})
    const { socket } = transfer
    const chunk = Buffer.alloc(chunkBytes)
    const endMs = performance.now() + milliseconds
    while (performance.now() < endMs && !socket.destroyed) {
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
    }
    socket.end()
  },
}

export interface LinkRate {
  readonly bytes: number
  readonly milliseconds: number
  readonly bytesPerSecond: number
}

/** How fast the other machine can send to this one over a link. The first part is let pass: windows open slowly. */
export async function measureRate(
  bulk: Bulk,
  to: { machine: MachineId; link?: string; milliseconds: number },
): Promise<LinkRate> {
  const { machine, link, milliseconds } = to
  const stream = await bulk.open(machine, {
    service: 'probe-source',
    milliseconds,
    ...(link === undefined ? {} : { link }),
  })
  const warmUpMs = milliseconds / 4
  const startedMs = performance.now()
  let firstMs: number | null = null
  let lastMs = startedMs
  let bytes = 0
  stream.socket.on('data', (chunk: Buffer) => {
    lastMs = performance.now()
    if (lastMs - startedMs < warmUpMs) return
    if (firstMs === null) firstMs = lastMs
    else bytes += chunk.length
  })
  await once(stream.socket, 'close')
  const elapsed = Math.max(1, lastMs - (firstMs ?? startedMs))
  return { bytes, milliseconds: elapsed, bytesPerSecond: (bytes / elapsed) * 1000 }
}
