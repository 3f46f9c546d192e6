// The program: finds the asked command, loads it alone, and turns every failure into one clear line.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { type CliContext, UserError, exitCodes } from './command.ts'
import { createOutput } from './output.ts'
import { buildProgram } from './program.ts'

function findProgramDir(): string {
  let dir = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir)
  return dir
}

export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  const asked = argv.find((word) => !word.startsWith('-'))
  try {
    const program = await buildProgram(context, (name) => name === asked)
    if (argv.length === 0) program.help()
    await program.parseAsync(argv, { from: 'user' })
    return Number(process.exitCode ?? exitCodes.ok)
  } catch (error) {
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    if (error instanceof UserError) {
      context.out.note(`bushel: ${error.message}`)
      return error.exitCode
    }
    context.out.note(
      `bushel: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
    return exitCodes.failed
  }
}

if (process.argv[1] !== undefined && fileURLToPath(import.meta.url) === process.argv[1]) {
  const out = createOutput({ stdout: process.stdout, stderr: process.stderr })
  const code = await runCli(process.argv.slice(2), {
    env: process.env,
    programDir: findProgramDir(),
    out,
  })
  // Whatever a failed start has left open must not keep the process.
  process.exit(code)
}
