// The models this machine has: the starter, folders people named, imports, and the hub cache.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { ModelDigest } from '../core/ids.ts'
import { writeFileAtomically } from '../files/atomic-file.ts'
import {
  type DigestCache,
  type FileDigest,
  fileDigests,
  folderDigest,
  loadDigestCache,
} from './digest.ts'
import { type Env, cachedModels } from './hub-cache.ts'
import { inspectFolder } from './inspect-folder.ts'
import { readScript } from './scripted-model.ts'

export interface StoredModel {
  readonly ref: ModelRef
  readonly path: string
  readonly engine: 'mlx' | 'scripted'
  readonly origin: 'starter' | 'imported' | 'folder' | 'hub'
}

export interface ModelStoreOptions {
  /** Holds the starter, prepared once beside the program. */
  readonly starterDir: string
  readonly homeDir: string
  readonly env: Env
  readonly importGguf: (source: string, destination: string) => Promise<void>
}

export class ModelNotFoundError extends Error {
  override readonly name = 'ModelNotFoundError'
}

export class ModelStore {
  readonly #options: ModelStoreOptions
  readonly #importsDir: string
  readonly #foldersFile: string
  readonly #known = new Map<ModelDigest, StoredModel>()
  #digests: Promise<DigestCache & { readonly entries: ReadonlyMap<string, string> }>
  readonly #digestFile: string

  constructor(options: ModelStoreOptions) {
    this.#options = options
    this.#importsDir = join(options.homeDir, 'models')
    this.#foldersFile = join(options.homeDir, 'model-folders.json')
    this.#digestFile = join(options.homeDir, 'digests.json')
    this.#digests = loadDigestCache(this.#digestFile)
  }

  /** Looks at everything again; broken folders are named in the warnings and left out. */
  async refresh(): Promise<{ models: readonly StoredModel[]; warnings: readonly string[] }> {
    const warnings: string[] = []
    const found: StoredModel[] = []
    for (const { folder, origin, name } of await this.#candidates()) {
      try {
        found.push(await this.#open(folder, { origin, name }))
      } catch (error) {
        warnings.push(error instanceof Error ? error.message : String(error))
      }
    }
    this.#known.clear()
    for (const model of found)
      if (!this.#known.has(model.ref.digest)) this.#known.set(model.ref.digest, model)
    await this.#saveDigests()
    return { models: this.list(), warnings }
  }

  /** The starter first: it is what a new user meets. */
  list(): readonly StoredModel[] {
    return [...this.#known.values()]
  }

  byDigest(digest: ModelDigest): StoredModel | null {
    return this.#known.get(digest) ?? null
  }

  /** A name as people write it: whole, or the part behind the last slash when that is unique. */
  byName(name: string): StoredModel | null {
    const wanted = name.toLowerCase()
    const all = this.list()
    const exact = all.find((model) => model.ref.name.toLowerCase() === wanted)
    if (exact !== undefined) return exact
    const ending = all.filter((model) => model.ref.name.toLowerCase().endsWith(`/${wanted}`))
    return ending.length === 1 ? (ending[0] ?? null) : null
  }

  /** Where a copy of a model from another machine belongs. */
  copyFolder(ref: ModelRef): string {
    mkdirSync(this.#importsDir, { recursive: true })
    return join(this.#importsDir, `${ref.name.replaceAll('/', '--')}-${ref.digest.slice(0, 12)}`)
  }

  /** The files of a model with their hashes, for machines that want a copy. */
  async manifest(
    digest: ModelDigest,
  ): Promise<{ folder: string; files: readonly FileDigest[] } | null> {
    const model = this.byDigest(digest)
    if (model === null) return null
    const folder = model.engine === 'scripted' ? dirname(model.path) : model.path
    const names =
      model.engine === 'scripted' ? ['script.json'] : (await inspectFolder(folder)).files
    return {
      folder,
      files: await fileDigests(folder, { files: names, cache: await this.#digests }),
    }
  }

  /** What a person typed: a folder, a .gguf file, or a name. */
  async resolve(spec: string): Promise<StoredModel> {
    if (spec.endsWith('.gguf')) return this.#import(resolve(spec))
    if (spec.startsWith('.') || spec.startsWith('/') || existsSync(join(spec, 'config.json'))) {
      return this.#adopt(resolve(spec))
    }
    if (this.byName(spec) === null) await this.refresh()
    const model = this.byName(spec)
    if (model !== null) return model
    const names = this.list().map((known) => known.ref.name)
    throw new ModelNotFoundError(
      `There is no model "${spec}" on this machine (it has ${names.join(', ') || 'none'}); fetch one with "bushel pull ORG/NAME"`,
    )
  }

  /** Takes a model's files from the disk, or forgets a folder that is somebody else's; a sentence says why not. */
  async remove(model: StoredModel): Promise<string | null> {
    if (model.origin === 'starter')
      return `${model.ref.name} came with Bushel and is needed for its self-tests; it stays`
    if (model.origin === 'folder') {
      const folders = this.#namedFolders().filter((folder) => folder !== model.path)
      await writeFileAtomically(this.#foldersFile, `${JSON.stringify(folders, null, 1)}\n`)
    } else {
      const folder = model.engine === 'scripted' ? dirname(model.path) : model.path
      // Of the hub's cache the whole repository goes: its snapshots are links into its blobs.
      const [repo = folder] = folder.split(`${sep}snapshots${sep}`)
      await rm(model.origin === 'hub' ? repo : folder, { recursive: true, force: true })
    }
    this.#known.delete(model.ref.digest)
    return null
  }

  async #adopt(folder: string): Promise<StoredModel> {
    const model = await this.#open(await realpath(folder).catch(() => folder), {
      origin: 'folder',
      name: basename(folder),
    })
    this.#known.set(model.ref.digest, model)
    const folders = new Set([...this.#namedFolders(), model.path])
    await writeFileAtomically(this.#foldersFile, `${JSON.stringify([...folders], null, 1)}\n`)
    await this.#saveDigests()
    return model
  }

  async #import(source: string): Promise<StoredModel> {
    const file = await stat(source).catch(() => null)
    if (file === null) throw new ModelNotFoundError(`There is no file ${source}`)
    const digests = await this.#digests
    const digest = await folderDigest(join(source, '..'), {
      files: [basename(source)],
      cache: digests,
    })
    const name = basename(source, '.gguf')
    const folder = join(this.#importsDir, `${name}-${digest.slice(0, 12)}`)
    if (!existsSync(join(folder, 'config.json'))) {
      mkdirSync(this.#importsDir, { recursive: true })
      await this.#options.importGguf(source, folder)
    }
    const model = await this.#open(folder, { origin: 'imported', name })
    this.#known.set(model.ref.digest, model)
    await this.#saveDigests()
    return model
  }

  async #candidates(): Promise<{ folder: string; origin: StoredModel['origin']; name: string }[]> {
    const candidates: { folder: string; origin: StoredModel['origin']; name: string }[] = []
    for (const name of await listFolders(this.#options.starterDir)) {
      candidates.push({ folder: join(this.#options.starterDir, name), origin: 'starter', name })
    }
    for (const entry of await listFolders(this.#importsDir)) {
      if (entry.endsWith('.partial')) continue
      const name = entry.replace(/-[0-9a-f]{12}$/, '').replaceAll('--', '/')
      candidates.push({ folder: join(this.#importsDir, entry), origin: 'imported', name })
    }
    for (const folder of this.#namedFolders()) {
      if (existsSync(folder)) candidates.push({ folder, origin: 'folder', name: basename(folder) })
    }
    for (const { folder, name } of await cachedModels(this.#options.env)) {
      candidates.push({ folder, origin: 'hub', name })
    }
    return candidates
  }

  async #open(
    folder: string,
    about: { origin: StoredModel['origin']; name: string },
  ): Promise<StoredModel> {
    const { name } = about
    const scripted = await readScript(folder)
    if (scripted !== null)
      return {
        ref: { ...scripted, name },
        path: join(folder, 'script.json'),
        engine: 'scripted',
        origin: about.origin,
      }
    const { files, ...facts } = await inspectFolder(folder)
    const digest = await folderDigest(folder, { files, cache: await this.#digests })
    return { ref: { name, digest, ...facts }, path: folder, engine: 'mlx', origin: about.origin }
  }

  #namedFolders(): readonly string[] {
    try {
      const json: unknown = JSON.parse(readFileSync(this.#foldersFile, 'utf8'))
      return Array.isArray(json) ? json.filter((entry) => typeof entry === 'string') : []
    } catch {
      return []
    }
  }

  async #saveDigests(): Promise<void> {
    const { entries } = await this.#digests
    const text = `${JSON.stringify(Object.fromEntries(entries), null, 1)}\n`
    // A read-only home loses only the memory of digests.
    await writeFileAtomically(this.#digestFile, text).catch(() => undefined)
  }
}

async function listFolders(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort()
}
