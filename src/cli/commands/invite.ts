// bushel invite: a code that lets other machines in.
import type { Command } from 'commander'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command
    .option('--uses <n>', 'how many machines may use it', '1')
    .action(async (options: { uses: string; json?: boolean }) => {
      const uses = Number(options.uses)
      if (!Number.isInteger(uses) || uses < 1 || uses > 100) {
        throw new UserError(`"${options.uses}" is no number of uses; give 1 to 100`, {
          exitCode: exitCodes.usage,
        })
      }
      const { code } = (await requireDaemon(homeDir(context.env)).post('/cluster/invite', {
        uses,
      })) as { code: string }
      if (options.json === true) context.out.json({ code })
      else {
        context.out.result(code)
        context.out.note(
          `Good for 10 minutes and ${uses === 1 ? 'one machine' : `${uses} machines`}. On the other machine run:\n  bushel join ${code}`,
        )
      }
    })
}
