// bushel test: runs everything that checks Bushel itself. Only a checkout has the tests.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type CliContext, UserError } from '../command.ts'
import { ensureSetup } from '../setup/ensure.ts'

export function register(command: Command, context: CliContext): void {
  command
    .option('--long', 'also the soaks and long runs')
    .option('--only <suite...>', 'only suites whose name contains this')
    .option('--list', 'list the suites')
    .action(async (options: { long?: boolean; only?: readonly string[]; list?: boolean }) => {
      const script = join(context.programDir, 'test', 'run.ts')
      if (!existsSync(script))
        throw new UserError(
          'The tests are in the source, not in an installed package; clone the repository',
        )
      if (options.list !== true) await ensureSetup(context)
      const args = [
        ...(options.long === true ? ['--long'] : []),
        ...(options.list === true ? ['--list'] : []),
        ...(options.only ?? []).flatMap((name) => ['--only', name]),
      ]
      const child = spawn(process.execPath, [script, ...args], {
        stdio: 'inherit',
        cwd: context.programDir,
      })
      process.exitCode = await new Promise<number>((done) =>
        child.on('close', (code) => done(code ?? 1)),
      )
    })
}
