// bushel drain: takes a machine out of service without losing an answer.
import type { Command } from 'commander'
import { type ClusterView, clusterView } from '../../wire/cluster-view.ts'
import { type CliContext, UserError } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { createProgress } from '../setup/progress.ts'

const pollMs = 250
/** A group that nobody can take over after this long will not move by itself. */
const stuckMs = 60_000

export function register(command: Command, context: CliContext): void {
  command
    .argument('<machine>', 'its name')
    .option('--off', 'let ranks come back to it')
    .option('--no-wait', 'return at once instead of when it is empty')
    .action(async (name: string, options: { off?: boolean; wait: boolean; json?: boolean }) => {
      const daemon = requireDaemon(homeDir(context.env))
      const on = options.off !== true
      const drained = (await daemon.post('/cluster/drain', { name, on })) as { name: string }
      if (on && options.wait) await waitUntilEmpty(daemon, drained.name, context)
      if (options.json === true) context.out.json({ ...drained, draining: on })
      else if (!on) context.out.result(`${drained.name} takes ranks again.`)
      else
        context.out.result(
          options.wait
            ? `${drained.name} is empty; work on it, then "bushel drain ${drained.name} --off".`
            : `${drained.name} is being emptied.`,
        )
    })
}

async function waitUntilEmpty(
  daemon: DaemonClient,
  name: string,
  context: CliContext,
): Promise<void> {
  const progress = createProgress(context.out, (text) => void process.stderr.write(text))
  progress.phase(`emptying ${name}`)
  const startedMs = performance.now()
  for (;;) {
    const view = clusterView.parse(await daemon.get('/cluster/view'))
    const left = modelsOn(view, name)
    if (left.length === 0) break
    if (performance.now() - startedMs > stuckMs) {
      throw new UserError(
        `${left.join(', ')} still on ${name}: no other machine can take it over, or answers are still being finished ("bushel ps" says which). It goes when one can; "bushel unload" ends it.`,
      )
    }
    progress.update(`moving ${left.join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  progress.done()
}

function modelsOn({ deployments }: ClusterView, name: string): readonly string[] {
  return deployments
    .filter(({ groups }) =>
      groups.some(({ stages }) =>
        stages.some(({ ranks }) =>
          ranks.some((rank) => rank.machine === name && rank.state !== 'missing'),
        ),
      ),
    )
    .map((deployment) => deployment.model)
}
