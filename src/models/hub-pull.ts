// Fetches a model from a hub into the Hugging Face cache: resumes where it stopped, and believes no
// byte before its hash is right.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as WebStream } from 'node:stream/web'
import { type ListFileEntry, downloadFile, listFiles, modelInfo } from '@huggingface/hub'

export class PullError extends Error {
  override readonly name = 'PullError'
}

export interface PullProgress {
  readonly phase: 'resolving' | 'downloading' | 'verifying' | 'done'
  readonly file: string
  readonly doneBytes: number
  readonly totalBytes: number
}

export interface PullOptions {
  readonly name: string
  readonly revision?: string
  readonly cacheDir: string
  readonly endpoint: string
  readonly token?: string
  readonly progress: (progress: PullProgress) => void
}

/** Weights and what reads them; other formats of the same model are left where they are. */
const wanted = /(^|\/)[^/]+\.(json|safetensors|jinja|txt|model|tiktoken)$/
const unwanted = /^(original|onnx|openvino|coreml)\//
const attemptsMax = 5

export async function pullModel(options: PullOptions): Promise<string> {
  const { name, cacheDir, endpoint, progress } = options
  if (!/^[\w.-]+\/[\w.-]+$/.test(name) || name.includes('..')) {
    throw new PullError(`"${name}" is no hub name; give it as ORG/NAME`)
  }
  progress({ phase: 'resolving', file: name, doneBytes: 0, totalBytes: 0 })
  const access = {
    hubUrl: endpoint,
    ...(options.token === undefined ? {} : { accessToken: options.token }),
  }
  const repo = { type: 'model', name } as const
  const sha = await explained(name, async () => {
    const info = await modelInfo({
      name,
      ...access,
      additionalFields: ['sha'],
      revision: options.revision ?? 'main',
    })
    return info.sha
  })
  const files: ListFileEntry[] = []
  await explained(name, async () => {
    for await (const entry of listFiles({ repo, revision: sha, recursive: true, ...access })) {
      if (entry.type === 'file' && wanted.test(entry.path) && !unwanted.test(entry.path))
        files.push(entry)
    }
  })
  refuseUnusable(name, files)
  const store = join(cacheDir, `models--${name.replaceAll('/', '--')}`)
  const totalBytes = files.reduce((sum, file) => sum + file.size, 0)
  let finishedBytes = 0
  for (const file of files) {
    const report = (phase: PullProgress['phase'], doneBytes: number): void =>
      progress({ phase, file: file.path, doneBytes: finishedBytes + doneBytes, totalBytes })
    const blob = await fetchBlob({
      file,
      store,
      report,
      open: async () => openFile({ repo, sha, file, access }),
    })
    await linkInto(join(store, 'snapshots', sha), file.path, blob)
    finishedBytes += file.size
  }
  // The ref comes last: a folder without it is not yet a whole model.
  const ref = join(store, 'refs', options.revision ?? 'main')
  await mkdir(dirname(ref), { recursive: true })
  await writeFile(ref, sha)
  progress({ phase: 'done', file: name, doneBytes: totalBytes, totalBytes })
  return join(store, 'snapshots', sha)
}

function refuseUnusable(name: string, files: readonly ListFileEntry[]): void {
  for (const { path } of files) {
    if (path.startsWith('/') || path.split('/').includes('..')) {
      throw new PullError(`${name} lists a file outside its folder ("${path}"); it is not fetched`)
    }
  }
  if (!files.some((file) => file.path === 'config.json')) {
    throw new PullError(`${name} has no config.json, so it is no model for MLX`)
  }
  if (!files.some((file) => file.path.endsWith('.safetensors'))) {
    throw new PullError(
      `${name} has no safetensors weights; look for an MLX or safetensors version of it`,
    )
  }
}

async function explained<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const status = (error as { statusCode?: number }).statusCode
    if (status === 401 || status === 403) {
      throw new PullError(`${name} is private or gated: set HF_TOKEN to a token that may read it`, {
        cause: error,
      })
    }
    if (status === 404)
      throw new PullError(`The hub has no model "${name}"; check the spelling`, { cause: error })
    const reason = error instanceof Error ? error.message : String(error)
    throw new PullError(`Could not reach the hub for ${name}: ${reason}; try again`, {
      cause: error,
    })
  }
}

async function openFile(from: {
  repo: { type: 'model'; name: string }
  sha: string
  file: ListFileEntry
  access: { hubUrl: string; accessToken?: string }
}): Promise<Blob> {
  const { repo, sha, file, access } = from
  const blob = await downloadFile({ repo, path: file.path, revision: sha, ...access })
  if (blob === null) throw new PullError(`${file.path} has vanished from ${repo.name}; try again`)
  return blob
}

interface BlobFetch {
  readonly file: ListFileEntry
  readonly store: string
  readonly report: (phase: PullProgress['phase'], doneBytes: number) => void
  readonly open: () => Promise<Blob>
}

async function fetchBlob({ file, store, report, open }: BlobFetch): Promise<string> {
  const blob = join(store, 'blobs', expectedHash(file))
  if ((await sizeOf(blob)) === file.size) return blob
  await mkdir(dirname(blob), { recursive: true })
  const partial = `${blob}.incomplete`
  let failure: unknown
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    try {
      await appendRest({ partial, file, report, source: await open() })
      report('verifying', file.size)
      await verify(partial, file)
      await rename(partial, blob)
      return blob
    } catch (error) {
      if (error instanceof PullError) throw error
      failure = error
    }
  }
  const reason = failure instanceof Error ? failure.message : String(failure)
  throw new PullError(
    `Downloading ${file.path} failed ${attemptsMax} times (${reason}); run the same command to go on where it stopped`,
  )
}

async function appendRest(from: {
  partial: string
  file: ListFileEntry
  report: BlobFetch['report']
  source: Blob
}): Promise<void> {
  const { partial, file, report, source } = from
  let have = (await sizeOf(partial)) ?? 0
  if (have > file.size) {
    await truncate(partial, 0)
    have = 0
  }
  if (have === file.size) return
  const rest = Readable.fromWeb(source.slice(have, file.size).stream() as WebStream)
  rest.on('data', (chunk: Uint8Array) => {
    have += chunk.byteLength
    report('downloading', have)
  })
  await pipeline(rest, createWriteStream(partial, { flags: 'a' }))
}

/** Large files carry their sha256; small ones the hash git gives a blob. */
async function verify(path: string, file: ListFileEntry): Promise<void> {
  const hash = createHash(file.lfs === undefined ? 'sha1' : 'sha256')
  if (file.lfs === undefined) hash.update(`blob ${file.size}\0`)
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  const got = hash.digest('hex')
  const expected = expectedHash(file)
  if (got === expected) return
  await rm(path, { force: true })
  throw new Error(`its hash is ${got.slice(0, 12)}…, expected ${expected.slice(0, 12)}…`)
}

function expectedHash(file: ListFileEntry): string {
  const hash = file.lfs?.oid ?? file.oid
  if (hash === undefined)
    throw new PullError(`The hub gives no hash for ${file.path}; it is not fetched`)
  return hash
}

async function linkInto(snapshot: string, path: string, blob: string): Promise<void> {
  const link = join(snapshot, path)
  await mkdir(dirname(link), { recursive: true })
  await rm(link, { force: true })
  await symlink(relative(dirname(link), blob), link)
}

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(
    (file) => file.size,
    () => null,
  )
}
