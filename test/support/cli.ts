// Runs the command line in this process and keeps what it printed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli } from '../../src/cli/main.ts'

export interface CliRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const programDir = join(import.meta.dirname, '..', '..')

export async function cli(argv: readonly string[], home?: string): Promise<CliRun> {
  const ownHome = home ?? mkdtempSync(join(tmpdir(), 'bushel-home-'))
  let stdout = ''
  let stderr = ''
  const before = process.exitCode
  process.exitCode = 0
  try {
    const code = await runCli(argv, {
      env: { ...process.env, BUSHEL_HOME: ownHome },
      programDir,
      out: {
        result: (text) => void (stdout += text.endsWith('\n') ? text : `${text}\n`),
        json: (value) => void (stdout += `${JSON.stringify(value)}\n`),
        note: (text) => void (stderr += `${text}\n`),
        isTty: false,
      },
    })
    return { code, stdout, stderr }
  } finally {
    process.exitCode = before
    if (home === undefined) rmSync(ownHome, { recursive: true })
  }
}
