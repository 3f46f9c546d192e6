import { basename, join } from 'node:path'
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { importBundle, readBundle } from '../selftest/import-bundle.ts'

interface ImportOptions {
  readonly into?: string
  readonly name?: string
  readonly json?: boolean
}

export function register(command: Command, context: CliContext): void {
  command
    .command('import <file>')
    .description('turn a file of "bushel selftest --bundle" into captures for tests')
    .option('--into <folder>', 'where fixtures live (default: test/fixtures/machines)')
    .option('--name <name>', 'the name of the new folder (default: that of the file)')
    .action(async (file: string, _: unknown, self: Command) => {
      // --json belongs to the command above, which reads it first.
      const options = self.optsWithGlobals<ImportOptions>()
      const bundle = await readBundle(file)
      const report = await importBundle(bundle, {
        into: options.into ?? join(context.programDir, 'test', 'fixtures', 'machines'),
        name: options.name ?? folderName(file),
      })
      if (options.json === true) context.out.json(report)
      else
        context.out.result(
          `${report.folder}: ${report.machines.length} machine(s), ${report.measured.length} measured value(s)`,
        )
      context.out.note(`Look at it with "bushel doctor --from ${report.folder}".`)
    })
}

function folderName(file: string): string {
  return basename(file)
    .replace(/\.[^.]*$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
}
