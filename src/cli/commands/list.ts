// bushel list: the models on this machine.
import type { Command } from 'commander'
import { formatBytes } from '../../core/units.ts'
import { ModelStore } from '../../models/store.ts'
import type { CliContext } from '../command.ts'
import { findDaemon } from '../daemon-client.ts'
import { runtimePaths } from '../runtime-paths.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

interface Listed {
  readonly name: string
  readonly parameters: number
  readonly bytes: number
  readonly contextTokens: number
  readonly origin: string
  readonly loaded: boolean
}

export function register(command: Command, context: CliContext): void {
  command.alias('ls').action(async (options: { json?: boolean }) => {
    const daemon = findDaemon(homeDir(context.env))
    const models =
      daemon === null
        ? await fromDisk(context)
        : ((await daemon.get('/cluster/models')) as Listed[])
    if (options.json === true) {
      context.out.json(models)
      return
    }
    const rows = models.map((model) => [
      model.name,
      `${(model.parameters / 1e9).toFixed(model.parameters < 1e9 ? 2 : 1)} B`,
      formatBytes(model.bytes),
      `${model.contextTokens}`,
      model.origin,
      model.loaded ? 'loaded' : '',
    ])
    context.out.result(table(['NAME', 'PARAMETERS', 'ON DISK', 'CONTEXT', 'FROM', ''], rows))
  })
}

async function fromDisk(context: CliContext): Promise<Listed[]> {
  const store = new ModelStore({
    starterDir: runtimePaths(context).starterDir,
    homeDir: homeDir(context.env),
    env: context.env,
    importGguf: () => Promise.reject(new Error('nothing is imported while listing')),
  })
  const { models, warnings } = await store.refresh()
  for (const warning of warnings) context.out.note(`bushel: ${warning}`)
  return models.map(({ ref, origin }) => ({
    name: ref.name,
    parameters: ref.parameters,
    bytes: ref.weightsBytes,
    contextTokens: ref.contextTokens,
    origin,
    loaded: false,
  }))
}
