// Our mDNS service as packets, and sightings out of other machines' packets. What comes off the network is
// read with suspicion: sizes are bounded and anything odd is nothing.
import packet, { type Answer, type DecodedPacket } from 'dns-packet'
import { InvalidIdError, machineId } from '../../core/ids.ts'
import type { Sighting } from '../../ports/discovery.ts'

export const serviceName = '_bushel._tcp.local'
const ttlSeconds = 120
const answersMax = 64

export interface Announcement {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly port: number
}

export function encodeQuery(): Buffer {
  return packet.encode({ type: 'query', questions: [{ name: serviceName, type: 'PTR' }] })
}

export function encodeAnnouncement(
  about: Announcement,
  { goodbye = false }: { goodbye?: boolean } = {},
): Buffer {
  const instance = `${about.id}.${serviceName}`
  const target = `${about.id}.local`
  const ttl = goodbye ? 0 : ttlSeconds
  const answers: Answer[] = [
    { name: serviceName, type: 'PTR', ttl, data: instance },
    {
      name: instance,
      type: 'SRV',
      ttl,
      data: { port: about.port, target, priority: 0, weight: 0 },
    },
    {
      name: instance,
      type: 'TXT',
      ttl,
      data: [`id=${about.id}`, `name=${about.name}`, `version=${about.version}`],
    },
  ]
  return packet.encode({ type: 'response', flags: packet.AUTHORITATIVE_ANSWER, answers })
}

export type Heard =
  | { readonly kind: 'query' }
  | { readonly kind: 'sightings'; readonly sightings: readonly Omit<Sighting, 'host' | 'link'>[] }
  | { readonly kind: 'nothing' }

export function decode(bytes: Buffer): Heard {
  let decoded: DecodedPacket
  try {
    decoded = packet.decode(bytes)
  } catch {
    return { kind: 'nothing' }
  }
  if (decoded.type === 'query') {
    const asked = (decoded.questions ?? []).some((question) => question.name === serviceName)
    return asked ? { kind: 'query' } : { kind: 'nothing' }
  }
  const answers = [...(decoded.answers ?? []), ...(decoded.additionals ?? [])].slice(0, answersMax)
  const sightings = answers.flatMap((answer) => sightingOf(answer, answers))
  return sightings.length === 0 ? { kind: 'nothing' } : { kind: 'sightings', sightings }
}

function sightingOf(
  srv: Answer,
  answers: readonly Answer[],
): readonly Omit<Sighting, 'host' | 'link'>[] {
  if (srv.type !== 'SRV' || !srv.name.endsWith(`.${serviceName}`) || srv.ttl === 0) return []
  const txt = answers.find((answer) => answer.type === 'TXT' && answer.name === srv.name)
  const fields = txt?.type === 'TXT' ? textFields(txt.data) : new Map<string, string>()
  const { port } = srv.data
  if (!Number.isInteger(port) || port < 1 || port > 65535) return []
  try {
    const machine = machineId(fields.get('id') ?? '')
    const name = (fields.get('name') ?? '').replaceAll(/[^\w.-]/g, '').slice(0, 63)
    return [
      {
        machine,
        name: name === '' ? machine : name,
        version: (fields.get('version') ?? '').slice(0, 32),
        port,
      },
    ]
  } catch (error) {
    if (error instanceof InvalidIdError) return []
    throw error
  }
}

function textFields(data: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (const entry of Array.isArray(data) ? data.slice(0, 16) : [data]) {
    const text = Buffer.isBuffer(entry) ? entry.toString('utf8') : String(entry)
    const split = text.indexOf('=')
    if (split > 0 && text.length < 300) fields.set(text.slice(0, split), text.slice(split + 1))
  }
  return fields
}
