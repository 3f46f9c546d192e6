import { readFileSync } from 'node:fs'
import { access, constants, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { type CliContext, UserError } from '../command.ts'
import { runSelftest } from '../selftest/run-selftest.ts'

interface Options {
  readonly bundle?: string
  readonly word?: string
  readonly macmon?: boolean
  readonly json?: boolean
}

export function register(command: Command, context: CliContext): void {
  command
    .option('--bundle <file>', 'write what was found into this file, without names and addresses')
    .option('--word <word>', 'the same word on all your machines keeps their files matching')
    .option('--macmon', 'ask macmon too (beside MLX it is reported to crash it)')
    .action(async (options: Options) => {
      if (options.bundle !== undefined) await requireWritable(options.bundle)
      const manifest = readFileSync(join(context.programDir, 'package.json'), 'utf8')
      const bundle = await runSelftest(context, {
        bushel: (JSON.parse(manifest) as { version: string }).version,
        word: options.word,
        useMacmon: options.macmon === true,
        nowMs: () => Date.now(),
      })
      const text = `${JSON.stringify(bundle, null, 1)}\n`
      if (options.bundle !== undefined) {
        await writeFile(options.bundle, text, { mode: 0o600 })
        context.out.note(
          `Written to ${options.bundle}. Read it before you send it: it is plain text.`,
        )
      }
      if (options.json === true) context.out.json(bundle)
      else context.out.result(bundle.diagnosis.join('\n'))
    })
}

/** Before minutes of work: a file that cannot be written is found out now. */
async function requireWritable(path: string): Promise<void> {
  const folder = dirname(resolve(path))
  try {
    await access(folder, constants.W_OK)
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw new UserError(
      `Cannot write "${path}": ${isMissing ? `there is no folder ${folder}` : `${folder} cannot be written to`}`,
      { cause: error },
    )
  }
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory() === true)
    throw new UserError(`Cannot write "${path}": it is a folder; give the name of a file`)
}
