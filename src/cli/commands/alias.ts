// bushel alias: other names under which models can be asked for.
import type { Command } from 'commander'
import { z } from 'zod'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('[name=model...]', 'names to give; without any, those there are')
    .option('--remove <name...>', 'names to take away')
    .addHelpText(
      'after',
      `
Examples:
  bushel alias gpt-4o=Qwen3-8B-4bit
  bushel alias 'claude-*=Qwen3-8B-4bit'   every name that begins with claude-
  bushel alias --remove gpt-4o`,
    )
    .action(async (pairs: string[], options: { remove?: string[]; json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      for (const name of options.remove ?? []) await daemon.remove(aliasPath(name))
      for (const pair of pairs) await give(daemon, pair)
      const known = z.record(z.string(), z.string()).parse(await daemon.get('/cluster/aliases'))
      const rows = Object.entries(known).sort(([a], [b]) => (a < b ? -1 : 1))
      if (options.json === true) context.out.json(known)
      else if (rows.length === 0)
        context.out.result('No aliases; give one with "bushel alias NAME=MODEL".')
      else context.out.result(table(['NAME', 'MODEL'], rows))
    })
}

async function give(daemon: DaemonClient, pair: string): Promise<void> {
  const at = pair.indexOf('=')
  const [name, model] = [pair.slice(0, at), pair.slice(at + 1)]
  if (at < 1 || model === '')
    throw new UserError(`"${pair}" is no alias; write it as NAME=MODEL`, {
      exitCode: exitCodes.usage,
    })
  await daemon.post('/cluster/aliases', { name, model })
}

function aliasPath(name: string): string {
  return `/cluster/aliases/${encodeURIComponent(name)}`
}
