// bushel leave: takes this machine out of its cluster.
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    const left = (await requireDaemon(homeDir(context.env)).post('/cluster/leave', {})) as {
      name: string
    }
    if (options.json === true) context.out.json(left)
    else
      context.out.result(
        `${left.name} has left the cluster; what it wanted before is in its archive.`,
      )
  })
}
