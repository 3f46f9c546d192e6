// bushel bench: measurements of Bushel beside what it is compared with. Only a checkout has them.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { ensureSetup } from '../setup/ensure.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('[name]', 'which one; without it they are listed')
    .argument('[options...]', 'passed on to it')
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nExamples:\n  bushel bench serve\n  bushel bench serve --openai http://127.0.0.1:8080',
    )
    .action(async (name: string | undefined, options: readonly string[]) => {
      const folder = join(context.programDir, 'bench')
      if (!existsSync(folder))
        throw new UserError(
          'The benchmarks are in the source, not in an installed package; clone the repository',
        )
      const names = readdirSync(folder)
        .filter((file) => file.endsWith('.ts'))
        .map((file) => file.replace('.ts', ''))
      if (name === undefined) {
        context.out.result(names.join('\n'))
        return
      }
      if (!names.includes(name))
        throw new UserError(`There is no benchmark "${name}"; there are: ${names.join(', ')}`, {
          exitCode: exitCodes.usage,
        })
      await ensureSetup(context)
      const child = spawn(process.execPath, [join(folder, `${name}.ts`), ...options], {
        stdio: 'inherit',
        cwd: context.programDir,
      })
      process.exitCode = await new Promise<number>((done) =>
        child.on('close', (code) => done(code ?? 1)),
      )
    })
}
