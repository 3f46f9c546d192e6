// One digest per model folder: every rank of a group must have the same bytes, or it does not start.
import { createHash } from 'node:crypto'
import { open, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ModelDigest, modelDigest } from '../core/ids.ts'

/** Remembers digests by what would change if the bytes did, so that a large model is read once. */
export interface DigestCache {
  get(key: string): string | undefined
  set(key: string, digest: string): void
}

export interface FileDigest {
  readonly name: string
  readonly size: number
  readonly sha256: string
}

export async function fileDigests(
  folder: string,
  {
    files,
    cache,
    progress,
  }: { files: readonly string[]; cache: DigestCache; progress?: (doneBytes: number) => void },
): Promise<readonly FileDigest[]> {
  const found: FileDigest[] = []
  let doneBytes = 0
  for (const name of [...files].sort()) {
    const path = await realpath(join(folder, name))
    const { size } = await stat(path)
    found.push({ name, size, sha256: await fileDigest(path, { cache, size }) })
    doneBytes += size
    progress?.(doneBytes)
  }
  return found
}

/** One digest over all files of a model: equal exactly when every byte is. */
export async function folderDigest(
  folder: string,
  options: Parameters<typeof fileDigests>[1],
): Promise<ModelDigest> {
  const whole = createHash('sha256')
  for (const { name, size, sha256 } of await fileDigests(folder, options))
    whole.update(`${name}\0${size}\0${sha256}\n`)
  return modelDigest(whole.digest('hex'))
}

async function fileDigest(
  path: string,
  { cache, size }: { cache: DigestCache; size: number },
): Promise<string> {
  // A hub cache names its large blobs by their sha256, and whoever wrote them has checked it.
  if (basename(dirname(path)) === 'blobs' && /^[0-9a-f]{64}$/.test(basename(path)))
    return basename(path)
  const { mtimeNs, ino } = await stat(path, { bigint: true })
  const key = `${path}\0${size}\0${mtimeNs}\0${ino}`
  const known = cache.get(key)
  if (known !== undefined) return known
  const digest = await hashFile(path)
  cache.set(key, digest)
  return digest
}

export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  // One buffer for the whole file: models have gigabytes, and a fresh one for each read would pile up.
  const buffer = Buffer.allocUnsafe(1024 * 1024)
  const file = await open(path)
  try {
    while (true) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length)
      if (bytesRead === 0) return hash.digest('hex')
      hash.update(buffer.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

/** A cache in a JSON file; losing it costs time, never truth. */
export async function loadDigestCache(
  file: string,
): Promise<DigestCache & { readonly entries: ReadonlyMap<string, string> }> {
  const entries = new Map<string, string>()
  try {
    const json = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>
    for (const [key, digest] of Object.entries(json)) entries.set(key, digest)
  } catch {
    // absent or unreadable: start anew
  }
  return {
    entries,
    get: (key) => entries.get(key),
    set: (key, digest) => void entries.set(key, digest),
  }
}
