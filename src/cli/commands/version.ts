import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'

export function register(command: Command, context: CliContext): void {
  command.action((options: { json?: boolean }) => {
    const manifest = readFileSync(join(context.programDir, 'package.json'), 'utf8')
    const { version } = JSON.parse(manifest) as { version: string }
    if (options.json === true) context.out.json({ version, node: process.version })
    else context.out.result(`bushel ${version} (Node ${process.version})`)
  })
}
