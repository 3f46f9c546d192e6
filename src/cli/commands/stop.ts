// bushel stop: ends the daemon of this home and waits until it is gone.
import type { Command } from 'commander'
import { type CliContext, UserError } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { readDaemonFile } from '../daemon-file.ts'
import { homeDir } from '../settings.ts'

/** Answers under way may finish first; --now does not wait for them. */
const waitMsMax = 150_000

export function register(command: Command, context: CliContext): void {
  command.option('--now', 'cut off answers that are under way')
  command.action(async (options: { json?: boolean; now?: boolean }) => {
    const home = homeDir(context.env)
    const daemon = findDaemon(home)
    if (daemon === null) {
      if (options.json === true) context.out.json({ stopped: false })
      else context.out.result('No daemon is running.')
      return
    }
    await daemon.post('/cluster/stop', {})
    // Asked twice, it does not wait.
    if (options.now === true) await daemon.post('/cluster/stop', {}).catch(() => undefined)
    const end = performance.now() + waitMsMax
    while (readDaemonFile(home) !== null) {
      if (performance.now() > end)
        throw new UserError(
          `The daemon (pid ${daemon.pid}) has not ended after ${waitMsMax / 1000} s`,
        )
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    if (options.json === true) context.out.json({ stopped: true, pid: daemon.pid })
    else context.out.result('Stopped.')
  })
}
