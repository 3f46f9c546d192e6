// The command tree, built from the registry.
import { Command } from 'commander'
import type { CliContext } from './command.ts'
import { registry } from './registry.ts'

/** Builds the whole command tree, with the bodies of `wanted` alone (or of all, for completion). */
export async function buildProgram(
  context: CliContext,
  wanted: (name: string) => boolean,
): Promise<Command> {
  const program = new Command('bushel')
    .description('Bushel turns the Macs you own into one AI machine.')
    .showHelpAfterError('(add --help for usage)')
    .enablePositionalOptions()
    .exitOverride()
  for (const [name, entry] of Object.entries(registry)) {
    const command = program
      .command(name)
      .summary(entry.summary)
      .description(entry.summary)
      .helpGroup(`${entry.section}:`)
      .enablePositionalOptions()
      .exitOverride()
    if (!wanted(name)) continue
    command.option('--json', 'print one JSON document on stdout')
    const module = await entry.load()
    module.register(command, context)
    for (const sub of command.commands) {
      const hasJson = sub.options.some((option) => option.long === '--json')
      if (!hasJson) sub.option('--json', 'print one JSON document on stdout')
    }
  }
  return program
}
