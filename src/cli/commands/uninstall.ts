// bushel uninstall: stops the daemon and removes what Bushel has put anywhere.
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { readDaemonFile } from '../daemon-file.ts'
import { runtimePaths } from '../runtime-paths.ts'
import { homeDir } from '../settings.ts'

export function register(command: Command, context: CliContext): void {
  command
    .option('-y, --yes', 'do not ask')
    .option('--keep-home', 'keep the home folder (state, logs, imported models)')
    .action(async (options: { yes?: boolean; keepHome?: boolean; json?: boolean }) => {
      const home = homeDir(context.env)
      const folders = [
        runtimePaths(context).runtimeDir,
        join(context.programDir, 'node_modules', '.bushel-stamp'),
      ]
      if (options.keepHome !== true) folders.push(home)
      const present = folders.filter((folder) => existsSync(folder))
      if (options.yes !== true) await confirm(context, present)
      await stopDaemon(home)
      for (const folder of present) rmSync(folder, { recursive: true, force: true })
      if (options.json === true) context.out.json({ removed: present })
      else
        context.out.result(
          `Removed ${present.join(', ') || 'nothing'}. Models in the Hugging Face cache are left; delete this folder to finish.`,
        )
    })
}

async function confirm(context: CliContext, folders: readonly string[]): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new UserError('Uninstalling removes files; add --yes to confirm', {
      exitCode: exitCodes.usage,
    })
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await prompt.question(`Stop the daemon and remove ${folders.join(', ')}? [y/N] `)
  prompt.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new UserError('Nothing was removed')
  context.out.note('Removing …')
}

async function stopDaemon(home: string): Promise<void> {
  const daemon = findDaemon(home)
  if (daemon === null) return
  await daemon.post('/cluster/stop', {})
  for (let tries = 0; tries < 600 && readDaemonFile(home) !== null; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
