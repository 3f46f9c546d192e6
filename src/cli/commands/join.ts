// bushel join: brings this machine into a cluster, with a code or by asking a machine nearby.
import type { Command } from 'commander'
import { type CliContext, UserError } from '../command.ts'
import { ensureDaemon } from '../background-daemon.ts'
import { homeDir } from '../settings.ts'
import { type DaemonClient, findDaemon } from '../daemon-client.ts'

interface Joined {
  readonly name: string
  readonly machines: number
}

export function register(command: Command, context: CliContext): void {
  command
    .argument('[code]', 'from "bushel invite"; without it a machine nearby is asked')
    .option('--ask <name>', 'which nearby machine to ask')
    .action(async (code: string | undefined, options: { ask?: string; json?: boolean }) => {
      const daemon = findDaemon(homeDir(context.env)) ?? (await ensureDaemon(context))
      const joined =
        code === undefined
          ? await ask(daemon, options.ask ?? null, context)
          : ((await daemon.post('/cluster/join', { code })) as Joined)
      if (options.json === true) context.out.json(joined)
      else
        context.out.result(`Joined as ${joined.name}; the cluster has ${joined.machines} machines.`)
    })
}

async function ask(
  daemon: DaemonClient,
  name: string | null,
  context: CliContext,
): Promise<Joined> {
  const response = await daemon.request('/cluster/ask', {
    method: 'POST',
    body: JSON.stringify({ name }),
  })
  if (response.body === null) throw new UserError('The daemon gave no answer')
  const decoder = new TextDecoder()
  let held = ''
  for await (const bytes of response.body) {
    held += decoder.decode(bytes as Uint8Array, { stream: true })
    const lines = held.split('\n')
    held = lines.pop() ?? ''
    for (const line of lines) {
      const said = JSON.parse(line) as { words?: string; refused?: string } & Partial<Joined>
      if (said.words !== undefined) {
        context.out.note(
          `The four words are:  ${said.words}\nCompare them on the other machine, then run there: bushel approve`,
        )
      } else if (said.refused !== undefined) throw new UserError(said.refused)
      else if (said.name !== undefined) return said as Joined
    }
  }
  throw new UserError('The other machine gave no answer')
}
