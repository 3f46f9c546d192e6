// Runs the importer, which needs the Python packages, as a process of its own.
import { spawn } from 'node:child_process'
import { UserError } from './command.ts'
import type { RuntimePaths } from './runtime-paths.ts'

export async function importGguf(job: {
  paths: RuntimePaths
  source: string
  destination: string
  progress?: (line: string) => void
}): Promise<void> {
  const { paths, source, destination } = job
  const child = spawn(paths.python, ['-m', 'bushel_worker.importer', source, destination], {
    cwd: paths.workerDir,
    env: { ...process.env, PYTHONPATH: paths.workerDir, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4000)))
  child.stdout.on('data', (chunk: Buffer) => job.progress?.(chunk.toString()))
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exit) => resolve(exit ?? 1))
  })
  if (code !== 0)
    throw new UserError(errors.trim().split('\n').at(-1) ?? `Importing ${source} failed`)
}
