// Runs one measuring process of the worker: short-lived, bounded in time, its lines as they come.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { assertNever } from '../core/assert.ts'

const host = z.ipv4()
const port = z.int().min(1024).max(65_535)

/** What a machine of the cluster may ask another one to measure. */
export const probeJob = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('machine') }),
  z.object({ kind: z.literal('hop-serve'), host }),
  z.object({
    kind: z.literal('hop-dial'),
    host,
    port,
    secret: z.string().regex(/^[0-9a-f]{32}$/),
  }),
  z.object({
    kind: z.literal('world'),
    rank: z.int().min(0).max(63),
    hosts: z.array(z.object({ host, port })).min(2).max(64),
  }),
])
export type ProbeJob = z.infer<typeof probeJob>

export interface ProbeProgram {
  readonly python: string
  readonly workerDir: string
  readonly env: Readonly<Record<string, string>>
}

/** A machine probe of a laptop under load takes a minute; what takes three has hung. */
const probeMsMax = 180_000
const errorCharsMax = 2000

export class ProbeFailedError extends Error {
  override readonly name = 'ProbeFailedError'
}

/** Yields what the process prints; throws with its last words when it fails. */
export async function* runProbe(
  program: ProbeProgram,
  job: ProbeJob,
): AsyncGenerator<string, void, undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-probe-'))
  const child = spawn(program.python, ['-m', 'bushel_worker.probe', ...wordsOf(job)], {
    cwd: program.workerDir,
    env: {
      ...process.env,
      ...program.env,
      PYTHONPATH: program.workerDir,
      ...worldEnv(job, folder),
    },
    // Its input closes with this process, and it ends when it does.
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on(
    'data',
    (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-errorCharsMax)),
  )
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', (error) => {
      errors = error.message
      resolve(1)
    })
    child.once('close', resolve)
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), probeMsMax)
  try {
    for await (const line of createInterface({ input: child.stdout })) yield line
    if ((await ended) !== 0) throw new ProbeFailedError(lastLine(errors))
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

function wordsOf(job: ProbeJob): readonly string[] {
  switch (job.kind) {
    case 'machine':
      return ['machine']
    case 'hop-serve':
      return ['hop-serve', job.host]
    case 'hop-dial':
      return ['hop-dial', job.host, String(job.port), job.secret]
    case 'world':
      return ['world', 'ring']
    default:
      return assertNever(job)
  }
}

function worldEnv(job: ProbeJob, folder: string): Readonly<Record<string, string>> {
  if (job.kind !== 'world') return {}
  const hostfile = join(folder, 'hosts.json')
  writeFileSync(hostfile, JSON.stringify(job.hosts.map((one) => [`${one.host}:${one.port}`])))
  return { MLX_RANK: String(job.rank), MLX_HOSTFILE: hostfile }
}

const lastLine = (text: string): string =>
  text.trim().split('\n').at(-1) ?? 'it ended without a word'
