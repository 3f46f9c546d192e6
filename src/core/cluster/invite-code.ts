// An invitation as text that people copy or type: who invites, where, and a secret. A typing mistake is
// noticed before anything is dialled.
import { type MachineId, machineId } from '../ids.ts'

export interface Invitation {
  readonly inviter: MachineId
  /** 128 bits in hex. */
  readonly secret: string
  readonly port: number
  /** IPv4 addresses at which the inviter listens. */
  readonly addresses: readonly string[]
}

export type InviteParse =
  | { readonly kind: 'read'; readonly invitation: Invitation }
  | { readonly kind: 'not-a-code'; readonly reason: string }

/** Without letters that look like digits or spell things. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const format = 1
const idBytes = 16
const secretBytes = 16
const checkBytes = 3
const groupSize = 5
const addressesMax = 8

export function encodeInvitation(invitation: Invitation): string {
  const { inviter, secret, port, addresses } = invitation
  const body = [
    format,
    ...hexToBytes(inviter),
    ...hexToBytes(secret),
    port >> 8,
    port & 0xff,
    ...addresses.slice(0, addressesMax).flatMap((address) => address.split('.').map(Number)),
  ]
  const text = toBase32([...body, ...checksum(body)])
  return text.match(new RegExp(`.{1,${groupSize}}`, 'g'))?.join('-') ?? text
}

export function decodeInvitation(text: string): InviteParse {
  const broken = (reason: string): InviteParse => ({ kind: 'not-a-code', reason })
  // Letters that people confuse are read as what they look like.
  const plain = text
    .toLowerCase()
    .replaceAll(/[\s-]/g, '')
    .replaceAll('o', '0')
    .replaceAll(/[il]/g, '1')
    .replaceAll('u', 'v')
  const bytes = fromBase32(plain)
  if (bytes === null) return broken('it holds characters that no code has')
  const body = bytes.slice(0, -checkBytes)
  const head = 1 + idBytes + secretBytes + 2
  if (body.length < head || (body.length - head) % 4 !== 0)
    return broken('it is cut off or too long')
  if (checksum(body).join() !== bytes.slice(-checkBytes).join())
    return broken('a character is wrong or missing')
  if (body[0] !== format) return broken('a newer Bushel made it; update this one')
  const rest = body.slice(head)
  const addresses: string[] = []
  for (let index = 0; index < rest.length; index += 4)
    addresses.push(rest.slice(index, index + 4).join('.'))
  return {
    kind: 'read',
    invitation: {
      inviter: machineId(bytesToHex(body.slice(1, 1 + idBytes))),
      secret: bytesToHex(body.slice(1 + idBytes, 1 + idBytes + secretBytes)),
      port: ((body[head - 2] ?? 0) << 8) | (body[head - 1] ?? 0),
      addresses,
    },
  }
}

function hexToBytes(hex: string): number[] {
  const bytes: number[] = []
  for (let index = 0; index + 1 < hex.length; index += 2)
    bytes.push(Number.parseInt(hex.slice(index, index + 2), 16))
  return bytes
}

function bytesToHex(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Three bytes of a mixing hash: one wrong code in sixteen million passes. */
function checksum(bytes: readonly number[]): readonly number[] {
  let hash = 0x2545f491
  for (const [index, byte] of bytes.entries()) {
    hash = Math.imul(hash ^ (byte + index * 257), 0x9e3779b1)
    hash ^= hash >>> 13
  }
  return [hash & 0xff, (hash >>> 8) & 0xff, (hash >>> 16) & 0xff]
}

function toBase32(bytes: readonly number[]): string {
  let text = ''
  let held = 0
  let bits = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(held >>> bits) & 31] ?? ''
      held &= (1 << bits) - 1
    }
  }
  return bits === 0 ? text : text + (alphabet[(held << (5 - bits)) & 31] ?? '')
}

function fromBase32(text: string): readonly number[] | null {
  const bytes: number[] = []
  let held = 0
  let bits = 0
  for (const char of text) {
    const value = alphabet.indexOf(char)
    if (value === -1) return null
    held = (held << 5) | value
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes.push((held >>> bits) & 0xff)
      held &= (1 << bits) - 1
    }
  }
  // Left-over bits are padding and must be zero, or the text is not what was printed.
  return held === 0 ? bytes : null
}
