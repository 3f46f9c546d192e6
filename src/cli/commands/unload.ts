// bushel unload: a model is no longer wanted; answers in flight may finish, then its memory is free.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { clusterView } from '../../wire/cluster-view.ts'
import type { CliContext } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'

const lookEveryMs = 100
/** Without a word a person would wonder. */
const sayAfterMs = 3_000

export function register(command: Command, context: CliContext): void {
  command
    .argument('<model>')
    .option('--no-wait', 'return at once instead of when its memory is free')
    .action(async (model: string, options: { json?: boolean; wait: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      const outcome = (await daemon.post('/cluster/unload', { model })) as { deployment: string }
      if (options.wait) await untilGone(daemon, outcome.deployment, context)
      if (options.json === true) context.out.json(outcome)
      else context.out.result(`${model} is ${options.wait ? 'unloaded' : 'no longer wanted'}.`)
    })
}

async function untilGone(
  daemon: DaemonClient,
  deployment: string,
  context: CliContext,
): Promise<void> {
  const startedMs = performance.now()
  let isSaid = false
  while (true) {
    const { ending } = clusterView.parse(await daemon.get('/cluster/view'))
    const left = ending.filter((one) => one.deployment === deployment)
    if (left.length === 0) return
    if (!isSaid && performance.now() - startedMs > sayAfterMs) {
      isSaid = true
      const where = [...new Set(left.map(({ machine }) => machine))].join(', ')
      context.out.note(`Waiting for answers under way on ${where} …`)
    }
    await sleep(lookEveryMs)
  }
}
