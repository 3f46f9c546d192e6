// bushel load: makes a model wanted and waits until it answers.
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { type DeploymentView, deploymentView } from '../../wire/cluster-view.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type DaemonClient, requireDaemon } from '../daemon-client.ts'
import { modelArgument } from '../model-argument.ts'
import { homeDir } from '../settings.ts'
import { createProgress } from '../setup/progress.ts'

interface LoadFlags {
  readonly strategy: string
  readonly machines?: string
  readonly layers?: string
  readonly backend: string
  readonly devices?: string
  readonly replicas: string
  readonly standby?: boolean
  readonly context?: string
  readonly wait: boolean
  readonly json?: boolean
}

export function register(command: Command, context: CliContext): void {
  command
    .argument('<model>', 'a name, an MLX folder, or a .gguf file')
    .option(
      '--strategy <name>',
      'auto, single, pipeline, tensor, expert or tensor-pipeline',
      'auto',
    )
    .option('--machines <names>', 'only these machines, separated by commas')
    .option('--layers <counts>', 'layers per stage, for example 14,10,6')
    .option('--backend <name>', 'auto, ring, jaccl or nccl', 'auto')
    .option('--devices <file>', 'for JACCL: which RDMA device leads to which machine, as JSON')
    .option('--replicas <n>', 'how many groups serve it', '1')
    .option('--standby', 'keep a loaded spare where memory allows')
    .option('--context <tokens>', 'longest context to serve')
    .option('--no-wait', 'return at once instead of when it is ready')
    .action(async (model: string, flags: LoadFlags) => {
      const daemon = requireDaemon(homeDir(context.env))
      const body = {
        model: modelArgument(model),
        strategy: flags.strategy,
        machines: flags.machines?.split(',').map((name) => name.trim()) ?? [],
        layers: flags.layers?.split(',').map((count) => wholeNumber('--layers', count)) ?? [],
        backend: flags.backend,
        ...(flags.devices === undefined ? {} : { devices: await readDevices(flags.devices) }),
        replicas: wholeNumber('--replicas', flags.replicas),
        standby: flags.standby === true,
        ...(flags.context === undefined
          ? {}
          : { contextTokens: wholeNumber('--context', flags.context) }),
      }
      const { deployment } = (await daemon.post('/cluster/load', body)) as { deployment: string }
      const view = flags.wait
        ? await waitUntilReady({ daemon, deployment, context })
        : await find(daemon, deployment)
      if (flags.json === true) context.out.json(view)
      else {
        context.out.result(`${view?.model ?? deployment} is ${flags.wait ? 'ready' : 'wanted'}.`)
        for (const words of backendsOf(view)) context.out.note(words)
        const why = view?.groups[0]?.why ?? null
        if (why !== null) context.out.note(`Placed as it is because: ${why}`)
      }
    })
}

/** Which backend each world got, and why: a ring where JACCL was hoped for has a reason to mend. */
function backendsOf(view: DeploymentView | undefined): readonly string[] {
  const stages = view?.groups.flatMap((group) => group.stages) ?? []
  const worlds = stages.filter((stage) => stage.ranks.length > 1)
  return [...new Set(worlds.map((stage) => `Backend ${stage.backend}: ${stage.backendWhy}`))]
}

/** A bare matrix, or a hostfile as MLX's own tools write it. */
async function readDevices(file: string): Promise<unknown> {
  try {
    const json: unknown = JSON.parse(await readFile(file, 'utf8'))
    const hostfile = z.object({ hosts: z.array(z.object({ rdma: z.array(z.unknown()) })) })
    const parsed = hostfile.safeParse(json)
    return parsed.success ? parsed.data.hosts.map((host) => host.rdma) : json
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UserError(`Cannot read the devices in ${file}: ${reason}`)
  }
}

function wholeNumber(flag: string, text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new UserError(`"${text}" is no whole number for ${flag}`, { exitCode: exitCodes.usage })
}

async function find(daemon: DaemonClient, id: string): Promise<DeploymentView | undefined> {
  const views = z.array(deploymentView).parse(await daemon.get('/cluster/deployments'))
  return views.find((view) => view.id === id)
}

const pollMs = 250
/** Reasons that no time will change end the wait after this long without a group. */
const hopelessMs = 10_000

export async function waitUntilReady(wait: {
  daemon: DaemonClient
  deployment: string
  context: CliContext
}): Promise<DeploymentView> {
  const { daemon, deployment, context } = wait
  const progress = createProgress(context.out, (text) => void process.stderr.write(text))
  progress.phase(`loading ${deployment}`)
  let waitingSinceMs = performance.now()
  for (;;) {
    const view = await find(daemon, deployment)
    if (view === undefined)
      throw new UserError(`${deployment} was unloaded while it was being loaded`)
    if (view.status === 'ready') {
      progress.done()
      return view
    }
    if (view.status === 'degraded')
      throw new UserError(`${view.model} could not be loaded: ${view.detail}`)
    if (view.status !== 'waiting') waitingSinceMs = performance.now()
    if (performance.now() - waitingSinceMs > hopelessMs) {
      throw new UserError(
        `${view.model} cannot be placed: ${view.detail}; it stays wanted and starts when that changes`,
      )
    }
    progress.update(view.detail === '' ? view.status : view.detail)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
