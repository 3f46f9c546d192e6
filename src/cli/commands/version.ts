import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { readVersion } from '../version.ts'

export function register(command: Command, context: CliContext): void {
  command.action((options: { json?: boolean }) => {
    const version = readVersion(context.programDir)
    if (options.json === true) context.out.json({ version, node: process.version })
    else context.out.result(`bushel ${version} (Node ${process.version})`)
  })
}
