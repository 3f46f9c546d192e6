// Who this machine is: an Ed25519 key in a file only its owner can read; the id is a hash of the public key.
import {
  type KeyObject,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
} from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type MachineId, machineId } from '../core/ids.ts'
import { writeFileAtomically } from '../files/atomic-file.ts'

export interface Identity {
  readonly id: MachineId
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export class IdentityError extends Error {
  override readonly name = 'IdentityError'
}

const idHexDigits = 32

export function idOfPublicKey(key: KeyObject): MachineId {
  const spki = key.export({ type: 'spki', format: 'der' })
  return machineId(createHash('sha256').update(spki).digest('hex').slice(0, idHexDigits))
}

export async function loadIdentity(file: string): Promise<Identity> {
  if (!existsSync(file)) await createIdentity(file)
  // A key that others can read is no longer only ours; the mode is repaired, the key is kept.
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(readFileSync(file))
  } catch {
    throw new IdentityError(
      `${file} is not a readable private key; restore it from a backup, or move it away to become a new machine`,
    )
  }
  const publicKey = createPublicKey(privateKey)
  return { id: idOfPublicKey(publicKey), privateKey, publicKey }
}

async function createIdentity(file: string): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519')
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomically(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
  })
}
