// A self-signed certificate around a machine's key: TLS needs one, and what counts is only the key in it.
import { type KeyObject, randomBytes, sign } from 'node:crypto'

/** One element of DER: tag, length, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const size = body.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts)
const ed25519 = sequence(Buffer.from('06032b6570', 'hex'))
const commonName = Buffer.from('0603550403', 'hex')

function distinguishedName(name: string): Buffer {
  return sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(name, 'utf8')))))
}

function generalizedTime(text: string): Buffer {
  return der(0x18, Buffer.from(text, 'ascii'))
}

/** Valid for ever: clocks of home machines are wrong too often for dates to mean anything here. */
const validity = sequence(generalizedTime('20200101000000Z'), generalizedTime('99991231235959Z'))

export function selfSignedCertificate(
  keys: { privateKey: KeyObject; publicKey: KeyObject },
  name: string,
): string {
  const version3 = der(0xa0, der(2, Buffer.from([2])))
  // A leading zero bit keeps the serial number positive.
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const subject = distinguishedName(name)
  const publicKey = keys.publicKey.export({ type: 'spki', format: 'der' })
  const content = sequence(version3, der(2, serial), ed25519, subject, validity, subject, publicKey)
  const signature = der(3, Buffer.from([0]), sign(null, content, keys.privateKey))
  const base64 = sequence(content, ed25519, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/(.{64})/g, '$1\n').trimEnd()}\n-----END CERTIFICATE-----\n`
}
