// Files that are either the old or the new one, whatever happens in between.
import { randomBytes } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export async function writeFileAtomically(
  path: string,
  data: string | Uint8Array,
  options: { mode?: number } = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  let handle: FileHandle | null = null
  try {
    handle = await open(temporary, 'wx', options.mode ?? 0o644)
    await handle.writeFile(data)
    await handle.sync()
    await handle.close()
    handle = null
    await rename(temporary, path)
    await syncFolder(dirname(path))
  } catch (error) {
    await handle?.close().catch(() => undefined)
    await rm(temporary, { force: true }).catch(() => undefined)
    throw error
  }
}

/** A rename is durable only once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
