// Copies of a model between machines: the one that has it serves its files, the other fetches what it lacks,
// goes on where it stopped, and believes no file before its hash is right.
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import type { MachineId, ModelDigest } from '../../core/ids.ts'
import { type Bulk, BulkError, type BulkService } from './bulk.ts'

export interface ModelFile {
  readonly name: string
  readonly size: number
  readonly sha256: string
}

/** What the serving side must be able to say of its models. */
export interface ModelShelf {
  /** The folder and files of a model; null when it is not here. */
  filesOf(digest: ModelDigest): Promise<{ folder: string; files: readonly ModelFile[] } | null>
}

/** Of the folder itself, or one step down: what pools an embedding model lies in a folder of its own. */
const fileName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^/\\]+(\/[^/\\]+)?$/)
  .refine((name) => name.split('/').every((part) => part !== '..' && part !== '.'))
const manifestSchema = z.object({
  files: z
    .array(
      z.object({
        name: fileName,
        size: z.number().int().min(0),
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
      }),
    )
    .min(1)
    .max(10_000),
})
const fileRequest = z.object({
  digest: z.string(),
  name: fileName,
  offset: z.number().int().min(0),
})

export function modelServices(shelf: ModelShelf): readonly BulkService[] {
  const find = async (
    digest: unknown,
  ): Promise<{ folder: string; files: readonly ModelFile[] }> => {
    const found = typeof digest === 'string' ? await shelf.filesOf(digest as ModelDigest) : null
    if (found === null) throw new BulkError('this machine does not have that model any more')
    return found
  }
  return [
    {
      name: 'model-manifest',
      async serve(request, transfer) {
        const { files } = await find(request['digest'])
        transfer.open({ files })
        transfer.socket.end()
      },
    },
    {
      name: 'model-file',
      async serve(request, transfer) {
        const { digest, name, offset } = fileRequest.parse(request)
        const { folder, files } = await find(digest)
        // Only names of the manifest are served: nothing else in the folder is anyone's business.
        if (!files.some((file) => file.name === name))
          throw new BulkError(`the model has no file "${name}"`)
        transfer.open({})
        await pipeline(
          createReadStream(join(folder, name), { start: offset, highWaterMark: 1 << 20 }),
          transfer.socket,
        )
      },
    },
  ]
}

export interface CopyProgress {
  readonly doneBytes: number
  readonly totalBytes: number
}

const triesPerFileMax = 5

export async function copyModel(
  bulk: Bulk,
  job: {
    from: MachineId
    digest: ModelDigest
    destination: string
    hashFile: (path: string) => Promise<string>
    progress: (progress: CopyProgress) => void
  },
): Promise<void> {
  const { from, digest, destination } = job
  const partial = `${destination}.partial`
  const manifest = await bulk.open(from, { service: 'model-manifest', digest })
  const { files } = manifestSchema.parse(manifest.answer)
  manifest.socket.destroy()
  await mkdir(partial, { recursive: true })
  const totalBytes = files.reduce((sum, file) => sum + file.size, 0)
  let finishedBytes = 0
  for (const file of files) {
    const report = (bytes: number): void =>
      job.progress({ doneBytes: finishedBytes + bytes, totalBytes })
    const path = join(partial, file.name)
    await mkdir(dirname(path), { recursive: true })
    await fetchFile(bulk, { ...job, file, path, report })
    finishedBytes += file.size
    report(0)
  }
  // The folder gets its name only when everything in it is right.
  await rm(destination, { recursive: true, force: true })
  await rename(partial, destination)
  await syncFolder(dirname(destination))
}

async function fetchFile(
  bulk: Bulk,
  job: {
    from: MachineId
    digest: ModelDigest
    file: ModelFile
    path: string
    hashFile: (path: string) => Promise<string>
    report: (bytes: number) => void
  },
): Promise<void> {
  const { file, path } = job
  let failure: unknown = null
  for (let attempt = 0; attempt < triesPerFileMax; attempt++) {
    try {
      await appendRest(bulk, job)
      if ((await job.hashFile(path)) === file.sha256) return
      failure = new BulkError(`the copy of ${file.name} has another hash`)
      await rm(path, { force: true })
    } catch (error) {
      failure = error
    }
  }
  const reason = failure instanceof Error ? failure.message : String(failure)
  throw new BulkError(`copying ${file.name} failed ${triesPerFileMax} times: ${reason}`)
}

async function appendRest(
  bulk: Bulk,
  job: {
    from: MachineId
    digest: ModelDigest
    file: ModelFile
    path: string
    report: (bytes: number) => void
  },
): Promise<void> {
  const { from, digest, file, path, report } = job
  const have = await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
  if (have > file.size) await rm(path, { force: true })
  const offset = have > file.size ? 0 : have
  if (offset === file.size && file.size > 0) return
  const stream = await bulk.open(from, { service: 'model-file', digest, name: file.name, offset })
  let bytes = offset
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      report(bytes)
      done(null, chunk)
    },
  })
  if (stream.head.length > 0) stream.socket.unshift(stream.head)
  await pipeline(
    stream.socket,
    counted,
    createWriteStream(path, { flags: offset === 0 ? 'w' : 'a' }),
  )
  if (bytes !== file.size)
    throw new BulkError(`the transfer of ${file.name} broke off at ${bytes} of ${file.size} bytes`)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().catch(() => undefined)
  await folder.close()
}
