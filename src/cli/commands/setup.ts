// bushel setup: prepares everything that a first command would prepare.
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { runtimePaths } from '../runtime-paths.ts'
import { ensureSetup } from '../setup/ensure.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    await ensureSetup(context)
    const { runtimeDir, python } = runtimePaths(context)
    if (options.json === true) context.out.json({ ready: true, runtimeDir, python })
    else context.out.result(`Bushel is prepared in ${runtimeDir}. Start it with "bushel up".`)
  })
}
