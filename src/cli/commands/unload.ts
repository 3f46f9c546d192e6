// bushel unload: a model is no longer wanted; answers in flight may finish.
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command.argument('<model>').action(async (model: string, options: { json?: boolean }) => {
    const outcome = await requireDaemon(homeDir(context.env)).post('/cluster/unload', { model })
    if (options.json === true) context.out.json(outcome)
    else context.out.result(`${model} is no longer wanted.`)
  })
}
