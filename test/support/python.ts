// The Python runtime that holds the installed MLX, for tests that compare with MLX itself.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const programDir = join(import.meta.dirname, '..', '..')
export const runtimePython: string = join(programDir, '.runtime', 'python', 'bin', 'python')

/** The reason to skip a test that needs MLX, or false. */
export const withoutMlx: string | false = existsSync(runtimePython)
  ? false
  : 'needs the Python runtime with MLX (./bushel setup)'

export function runPython(script: string, input: string): string {
  const done = spawnSync(runtimePython, [join(import.meta.dirname, script)], {
    input,
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  if (done.status !== 0) throw new Error(`${script} failed: ${done.stderr}`)
  return done.stdout
}
