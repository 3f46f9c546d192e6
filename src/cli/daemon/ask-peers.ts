// One question to every machine that is heard at the moment; those that did not answer are told with the reason.
import { BulkError } from '../../adapters/peers/bulk.ts'
import type { MachineId } from '../../core/ids.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { Peers } from './peers.ts'

type Request = { readonly service: string } & Readonly<Record<string, unknown>>
export type PeerAnswer = Readonly<Record<string, unknown>>
export type Silent = readonly { readonly name: string; readonly reason: string }[]

export async function askPeer(peers: Peers, id: MachineId, request: Request): Promise<PeerAnswer> {
  const stream = await peers.bulk.open(id, request)
  stream.socket.destroy()
  if (stream.answer === undefined) throw new BulkError('it said nothing')
  return stream.answer
}

export async function askEveryPeer(
  parts: { machine: () => Machine; peers: Peers },
  request: Request,
): Promise<{ heard: readonly { id: MachineId; answer: PeerAnswer }[]; silent: Silent }> {
  const others = [...parts.machine().state.peers.values()].filter((peer) => peer.status === 'alive')
  const silent: { name: string; reason: string }[] = []
  const asked = others.map(async ({ id, record }) => {
    try {
      return [{ id, answer: await askPeer(parts.peers, id, request) }]
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      silent.push({ name: record?.name ?? id.slice(0, 8), reason })
      return []
    }
  })
  return { heard: (await Promise.all(asked)).flat(), silent }
}
