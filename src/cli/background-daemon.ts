// Starts a daemon that outlives the command which needed it.
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CliContext, UserError } from './command.ts'
import { type DaemonClient, findDaemon } from './daemon-client.ts'
import { homeDir } from './settings.ts'

const startMsMax = 60_000

export async function ensureDaemon(context: CliContext): Promise<DaemonClient> {
  const home = homeDir(context.env)
  const running = findDaemon(home)
  if (running !== null) return running
  context.out.note('Starting a daemon in the background (stop it with "bushel stop") …')
  mkdirSync(join(home, 'logs'), { recursive: true })
  const outputFile = join(home, 'logs', 'background.log')
  const output = openSync(outputFile, 'w')
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'up'], {
    detached: true,
    stdio: ['ignore', output, output],
    env: context.env,
  })
  closeSync(output)
  child.unref()
  const deadline = performance.now() + startMsMax
  while (performance.now() < deadline && child.exitCode === null) {
    const daemon = findDaemon(home)
    if (daemon !== null && (await isAnswering(daemon))) return daemon
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const said = readFileSync(outputFile, 'utf8').trim().split('\n').at(-1) ?? ''
  throw new UserError(`The daemon did not start: ${said.replace(/^bushel: /, '')}`)
}

async function isAnswering(daemon: DaemonClient): Promise<boolean> {
  return daemon.get('/healthz').then(
    () => true,
    () => false,
  )
}
