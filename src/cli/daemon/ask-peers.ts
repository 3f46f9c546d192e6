// One question to every machine that is heard at the moment; those that did not answer, and those that are not
// heard, are told with the reason.
import { BulkError } from '../../adapters/peers/bulk.ts'
import { roster } from '../../core/cluster/desired.ts'
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

export interface Answers {
  readonly heard: readonly { readonly id: MachineId; readonly answer: PeerAnswer }[]
  /** Heard by their beats, but without an answer. */
  readonly silent: Silent
  /** Members of the cluster that are not heard: nobody could ask them. */
  readonly away: Silent
}

export async function askEveryPeer(
  parts: { machine: () => Machine; peers: Peers },
  request: Request,
): Promise<Answers> {
  const { state } = parts.machine()
  const others = [...state.peers.values()].filter((peer) => peer.status === 'alive')
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
  const isHeard = (id: MachineId): boolean => others.some((peer) => peer.id === id)
  const away = [...roster(state.registers)].flatMap(([id, { name }]) =>
    id === state.self.id || isHeard(id) ? [] : [{ name, reason: awayReason }],
  )
  return { heard: (await Promise.all(asked)).flat(), silent, away }
}

const awayReason = 'it is not heard: switched off, asleep, without a daemon or cut off'
