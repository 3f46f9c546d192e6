// Models that are already in the Hugging Face cache of this machine, whoever put them there.
import { readFile, readdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

export function hubCacheDir(env: Env): string {
  const home =
    env['HF_HOME'] ??
    join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? homedir(), '.cache'), 'huggingface')
  return env['HF_HUB_CACHE'] ?? env['HUGGINGFACE_HUB_CACHE'] ?? join(home, 'hub')
}

export interface CachedModel {
  readonly name: string
  readonly folder: string
}

const folderPrefix = 'models--'

/** Snapshots that hold a config and weights, one per repository: the one its main branch points to. */
export async function cachedModels(env: Env): Promise<readonly CachedModel[]> {
  const root = hubCacheDir(env)
  const found: CachedModel[] = []
  for (const entry of await listDir(root)) {
    if (!entry.startsWith(folderPrefix)) continue
    const name = entry.slice(folderPrefix.length).replaceAll('--', '/')
    const folder = await newestSnapshot(join(root, entry))
    if (folder !== null) found.push({ name, folder })
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function newestSnapshot(repo: string): Promise<string | null> {
  const snapshots = join(repo, 'snapshots')
  const names = await listDir(snapshots)
  const main = await readFile(join(repo, 'refs', 'main'), 'utf8').catch(() => '')
  const ordered = [main.trim(), ...names].filter((name) => names.includes(name))
  for (const name of ordered) {
    const folder = join(snapshots, name)
    const files = await listDir(folder)
    if (files.includes('config.json') && files.some((file) => file.endsWith('.safetensors'))) {
      const whole = await Promise.all(
        files.map((file) => stat(join(folder, file)).catch(() => null)),
      )
      if (whole.every((file) => file !== null)) return folder
    }
  }
  return null
}

async function listDir(path: string): Promise<readonly string[]> {
  return readdir(path).catch(() => [])
}
