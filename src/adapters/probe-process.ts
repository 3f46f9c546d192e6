// Runs one measuring process of the worker: short-lived, bounded in time, its lines as they come.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { assertNever } from '../core/assert.ts'
import {
  type RankEnvironment,
  jacclEnvironment,
  ringEnvironment,
} from '../core/backends/rank-environment.ts'
import type { ProbeJob, WorldJob } from '../wire/probe-job.ts'

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

/** Yields what the process prints; throws with its last words when it fails. The signal ends it at once. */
export async function* runProbe(
  program: ProbeProgram,
  job: ProbeJob,
  signal?: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-probe-'))
  const child = spawn(program.python, ['-m', 'bushel_worker.probe', ...wordsOf(job)], {
    cwd: program.workerDir,
    env: environmentOf(program, job, folder),
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
  const kill = (): void => void child.kill('SIGKILL')
  const timer = setTimeout(() => {
    errors = `it took longer than ${probeMsMax / 1000} s`
    kill()
  }, probeMsMax)
  signal?.addEventListener('abort', kill)
  if (signal?.aborted === true) kill()
  try {
    for await (const line of createInterface({ input: child.stdout })) yield line
    if ((await ended) !== 0) throw new ProbeFailedError(lastLine(errors))
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', kill)
    kill()
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
      return ['world', job.backend]
    default:
      return assertNever(job)
  }
}

/** As a rank of a group gets it: the same devices, the same meeting point, nothing of another world inherited. */
export function worldEnvironment(job: WorldJob): RankEnvironment {
  if (job.backend === 'ring') {
    const addresses = job.hosts.map(({ host, port }) => [`${host}:${port}`])
    return ringEnvironment({ rank: job.rank, addresses })
  }
  const { rank, shape, matrix, coordinator } = job
  const { host: address, port } = coordinator
  return jacclEnvironment({
    rank,
    shape,
    matrix,
    rendezvous: { kind: 'coordinator', address, port },
  })
}

function environmentOf(program: ProbeProgram, job: ProbeJob, folder: string): NodeJS.ProcessEnv {
  const env = { ...process.env, ...program.env, PYTHONPATH: program.workerDir }
  if (job.kind !== 'world') return env
  const { set, unset, files } = worldEnvironment(job)
  const all: NodeJS.ProcessEnv = { ...env, ...set }
  for (const name of unset) delete all[name]
  for (const { variable, content } of files) {
    const path = join(folder, variable)
    writeFileSync(path, content)
    all[variable] = path
  }
  return all
}

const lastLine = (text: string): string =>
  text.trim().split('\n').at(-1) || 'it ended without a word'
