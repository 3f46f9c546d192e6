// bushel approve: lets in a machine that asks, after a person has compared the words.
import type { Command } from 'commander'
import type { CliContext } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

export function register(command: Command, context: CliContext): void {
  command
    .argument('[name]', 'the machine that asks; without it the asking ones are listed')
    .action(async (name: string | undefined, options: { json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      const { asking } = (await daemon.get('/cluster/nearby')) as {
        asking: { name: string; machine: string; words: string }[]
      }
      if (name === undefined) {
        if (options.json === true) context.out.json(asking)
        else if (asking.length === 0) context.out.result('No machine is asking to join.')
        else
          context.out.result(
            table(
              ['MACHINE', 'WORDS'],
              asking.map((other) => [other.name, other.words]),
            ),
          )
        return
      }
      const words = asking.find((other) => other.name === name)?.words
      const admitted = (await daemon.post('/cluster/approve', { name })) as { name: string }
      if (options.json === true) context.out.json(admitted)
      else
        context.out.result(
          `${admitted.name} is in the cluster${words === undefined ? '' : ` (words: ${words})`}.`,
        )
    })
}
