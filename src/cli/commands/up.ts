// bushel up: the daemon in the foreground, until a signal or "bushel stop".
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../command.ts'
import { startDaemon } from '../daemon/start.ts'
import { addSettingFlags } from '../setting-flags.ts'
import { type SettingFlags, loadSettings } from '../settings.ts'
import { ensureSetup } from '../setup/ensure.ts'

export function register(command: Command, context: CliContext): void {
  addSettingFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  bushel up                          the starter model at http://127.0.0.1:28743
  bushel up --model ./my-mlx-folder  another model
  bushel up --memory 16GB --name studio`,
    )
    .action(async (flags: SettingFlags & { json?: boolean }) => {
      await ensureSetup(context)
      const settings = loadSettings(flags, context.env)
      const daemon = await startDaemon(settings, context)
      announce(context, { url: daemon.url, name: settings.name, json: flags.json === true })
      let signals = 0
      const onSignal = (signal: NodeJS.Signals): void => {
        signals += 1
        // The second Ctrl-C of an impatient person ends it at once; ranks go with our pipes.
        if (signals > 1) process.exit(exitCodes.interrupted)
        const { liveCount } = daemon.serving.generations
        if (liveCount > 0)
          context.out.note(
            `Stopping when ${liveCount} answer(s) under way have ended; once more stops at once …`,
          )
        else context.out.note('Stopping …')
        void daemon.stop(signal)
      }
      process.on('SIGINT', onSignal)
      process.on('SIGTERM', onSignal)
      process.on('SIGHUP', onSignal)
      await daemon.ended
      context.out.note('Stopped.')
      process.exit(exitCodes.ok)
    })
}

function announce(
  context: CliContext,
  { url, name, json }: { url: string; name: string; json: boolean },
): void {
  if (json) context.out.json({ url, name, pid: process.pid })
  context.out.note(`Bushel is up on ${name}
  page  ${url}/
  API   ${url}/v1   (any OpenAI client; no key needed on this machine)
Stop it with Ctrl-C.`)
}
