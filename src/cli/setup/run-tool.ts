// Runs a tool of the set-up, shows what it is doing, and keeps its last words for the error.
import { spawn } from 'node:child_process'
import { UserError } from '../command.ts'

const keptBytes = 4000

export async function runTool(job: {
  command: string
  args: readonly string[]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  /** What failed, for the person: "Installing the Python packages". */
  purpose: string
  onLine?: (line: string) => void
}): Promise<void> {
  const child = spawn(job.command, job.args, {
    cwd: job.cwd,
    env: job.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let tail = ''
  const take = (chunk: Buffer): void => {
    const text = chunk.toString('utf8')
    tail = (tail + text).slice(-keptBytes)
    for (const line of text.split(/[\r\n]+/)) if (line.trim() !== '') job.onLine?.(line.trim())
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  // An interrupted set-up must not leave its tools running behind the prompt.
  const stop = (): void => void child.kill('SIGTERM')
  process.once('exit', stop)
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', (error) =>
      reject(new UserError(`${job.purpose} failed: ${job.command}: ${error.message}`)),
    )
    child.on('close', (exit) => resolve(exit ?? 1))
  })
  process.removeListener('exit', stop)
  if (code === 0) return
  const last = tail.trim().split('\n').slice(-6).join('\n  ')
  throw new UserError(
    `${job.purpose} failed (exit code ${code}); run the same command again to go on. Its last words:\n  ${last}`,
  )
}
