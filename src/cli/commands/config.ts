import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { renderHostfile, ringRankFile } from '../../core/backends/hostfile.ts'
import { type MlxBackend, type MlxConfig, mlxConfig } from '../../core/backends/mlx-config.ts'
import { buildTopology } from '../../core/topology/topology.ts'
import { type CliContext, UserError, exitCodes } from '../command.ts'
import { type FactsOptions, collectFacts } from '../machines/facts-source.ts'

interface Options extends FactsOptions {
  readonly backend?: string
  readonly over?: string
  readonly format: string
  readonly ssh: readonly string[]
  readonly env: readonly string[]
  readonly port: string
  readonly output?: string
  readonly json?: boolean
}

const backends: readonly MlxBackend[] = ['ring', 'jaccl', 'jaccl-ring']
const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value]

export function register(command: Command, context: CliContext): void {
  command
    .option('--from <folder>', 'read captures: one subfolder per machine')
    .option('--machines <names>', 'these machines, in this order, separated by commas')
    .option('--backend <backend>', 'ring, jaccl or jaccl-ring; chosen by the cabling otherwise')
    .option(
      '--over <medium>',
      'thunderbolt or network; Thunderbolt where there are cables otherwise',
    )
    .option(
      '--format <format>',
      'hostfile (mlx.launch), devices (MLX_IBV_DEVICES) or ring (MLX_HOSTFILE)',
      'hostfile',
    )
    .option('--ssh <machine=host>', 'how mlx.launch reaches a machine; repeatable', collect, [])
    .option('--env <key=value>', 'environment for the ranks; repeatable', collect, [])
    .option('--port <port>', 'first port of a ring', '32323')
    .option('--output <file>', 'write it there instead of to stdout')
    .action(async (options: Options) => {
      const request = readRequest(options)
      const { machines } = await collectFacts(context, options)
      const hasCables = buildTopology(machines).cables.length > 0
      const over = request.over ?? (hasCables ? 'thunderbolt' : 'network')
      const config = mlxConfig({ machines, ...request, over })
      if (config.kind === 'refused')
        throw new UserError(
          `Cannot write a hostfile over ${over}: ${config.reasons.join('; ')}${over === 'thunderbolt' ? '; "--over network" writes a ring over what else they share' : ''}`,
        )
      await print(context, options, config)
    })
}

function readRequest(options: Options) {
  const usage = { exitCode: exitCodes.usage }
  const backend = options.backend ?? null
  if (backend !== null && !backends.includes(backend as MlxBackend))
    throw new UserError(`There is no backend "${backend}": take ${backends.join(', ')}`, usage)
  const over = options.over ?? null
  if (over !== null && over !== 'thunderbolt' && over !== 'network')
    throw new UserError(`--over takes thunderbolt or network, not "${over}"`, usage)
  const pairs = options.ssh.map((pair) => {
    const [machine, host] = pair.split('=')
    if (machine === undefined || host === undefined || host === '')
      throw new UserError(`--ssh takes MACHINE=HOST, not "${pair}"`, usage)
    return [machine, host] as const
  })
  return {
    backend: backend as MlxBackend | null,
    over,
    envs: options.env,
    sshNames: Object.fromEntries(pairs),
  } as const
}

async function print(
  context: CliContext,
  options: Options,
  config: Extract<MlxConfig, { kind: 'configured' }>,
): Promise<void> {
  if (options.json === true) context.out.json(config)
  else {
    const text = contentOf(options, config)
    if (options.output === undefined) context.out.result(text)
    else await writeFile(options.output, text)
  }
  for (const note of config.notes) context.out.note(note)
  for (const [machine, commands] of Object.entries(config.setup))
    context.out.note([`Run on ${machine} first:`, ...commands.map((one) => `  ${one}`)].join('\n'))
}

function contentOf(
  options: Options,
  { hostfile }: Extract<MlxConfig, { kind: 'configured' }>,
): string {
  const compact = (value: unknown): string => `${JSON.stringify(value)}\n`
  switch (options.format) {
    case 'hostfile':
      return renderHostfile(hostfile)
    case 'devices':
      if (hostfile.backend === 'ring') throw new UserError('A TCP ring uses no RDMA devices')
      return compact(hostfile.hosts.map((host) => host.rdma))
    case 'ring':
      if (hostfile.backend !== 'ring')
        throw new UserError(
          `A ${hostfile.backend} hostfile holds no ring addresses; add --backend ring`,
        )
      return compact(ringRankFile(hostfile.hosts, Number(options.port)))
    default:
      throw new UserError(
        `There is no format "${options.format}": take hostfile, devices or ring`,
        {
          exitCode: exitCodes.usage,
        },
      )
  }
}
