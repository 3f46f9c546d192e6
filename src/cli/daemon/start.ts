// Puts a daemon together: adapters into ports, ports into the loop, the loop under the gateway. This is
// the one place that knows every concrete part.
import { hostname } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { cryptoEntropy } from '../../adapters/crypto-entropy.ts'
import { DiskJournal } from '../../adapters/disk-journal.ts'
import { loadIdentity } from '../../adapters/identity.ts'
import { RankProcesses } from '../../adapters/rank-process.ts'
import { soloNetwork } from '../../adapters/solo-network.ts'
import { systemClock } from '../../adapters/system-clock.ts'
import { initialState } from '../../core/cluster/state.ts'
import { createGateway } from '../../gateway/app.ts'
import { hashKey } from '../../gateway/guard.ts'
import { ModelStore } from '../../models/store.ts'
import { Machine } from '../../runtime/machine.ts'
import { RankSupervisor } from '../../runtime/ranks.ts'
import { Serving } from '../../runtime/serving.ts'
import { clusterActions } from '../cluster-actions.ts'
import { type CliContext, UserError } from '../command.ts'
import { type DaemonFile, releaseDaemonFile, takeDaemonFile } from '../daemon-file.ts'
import { importGguf } from '../import-gguf.ts'
import { openLog } from '../log.ts'
import { rankEnv, requirePython, runtimePaths } from '../runtime-paths.ts'
import type { Settings } from '../settings.ts'
import { readVersion } from '../version.ts'
import { wantFirstModel } from './first-model.ts'
import { listen } from './listen.ts'
import { describeSelf } from './self.ts'
import { createStopper } from './stopper.ts'

export interface Daemon {
  readonly url: string
  readonly machine: Machine
  readonly serving: Serving
  /** Resolves when the daemon has ended, by a signal or by request. */
  readonly ended: Promise<void>
  stop(reason: string): Promise<void>
}

export async function startDaemon(settings: Settings, context: CliContext): Promise<Daemon> {
  refuseOpenListener(settings)
  const paths = runtimePaths(context)
  requirePython(paths)
  const file = takeDaemonFile(settings.home, { host: settings.listen, port: settings.port })
  try {
    return await assemble({ settings, context, file })
  } catch (error) {
    releaseDaemonFile(settings.home)
    throw error
  }
}

/** Anyone on the network could ask; so somebody must have decided who may. */
function refuseOpenListener(settings: Settings): void {
  if (isLoopback(settings.listen) || settings.apiKey !== null) return
  throw new UserError(
    `Listening on ${settings.listen} needs an API key: set BUSHEL_API_KEY or api_key in ${join(settings.home, 'config.toml')}`,
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

interface Assembly {
  readonly settings: Settings
  readonly context: CliContext
  readonly file: DaemonFile
}

async function assemble({ settings, context, file }: Assembly): Promise<Daemon> {
  const paths = runtimePaths(context)
  const version = readVersion(context.programDir)
  const log = openLog(settings.home, settings.logLevel)
  const notes = {
    note: (
      level: 'info' | 'warn' | 'error',
      text: string,
      about: Readonly<Record<string, unknown>>,
    ) => log.logger[level](about, text),
  }
  const identity = await loadIdentity(join(settings.home, 'identity', 'machine.key'))
  const store = new ModelStore({
    starterDir: paths.starterDir,
    homeDir: settings.home,
    env: context.env,
    importGguf: (source, destination) => importGguf({ paths, source, destination }),
  })
  const { models, warnings } = await store.refresh()
  for (const warning of warnings) log.logger.warn(warning)
  const journal = new DiskJournal(join(settings.home, 'state'))
  const loaded = journal.load()
  if (loaded.warning !== null) context.out.note(`bushel: ${loaded.warning}`)
  const self = describeSelf({
    identity,
    settings,
    version,
    lastIncarnation: loaded.content?.incarnation ?? 0,
    models: models.map((model) => model.ref),
  })
  const ranks = new RankSupervisor({
    clock: systemClock,
    launcher: new RankProcesses({
      python: paths.python,
      workerDir: paths.workerDir,
      logDir: join(settings.home, 'logs'),
      env: rankEnv(paths),
      warn: (text, about) => log.logger.warn(about, text),
    }),
    filesOf: (digest) => store.byDigest(digest),
    post: (input) => machine.post(input),
    notes,
  })
  const machine = new Machine(
    initialState(self, { ...loaded.content, nowMs: systemClock.nowMs() }),
    { clock: systemClock, entropy: cryptoEntropy, network: soloNetwork, journal, ranks, notes },
  )
  const serving = new Serving({
    machine,
    clock: systemClock,
    entropy: cryptoEntropy,
    hostOn: () => ranks.attempts,
  })
  let finish: () => void = () => undefined
  const ended = new Promise<void>((resolve) => (finish = resolve))
  const stopper = createStopper({ settings, machine, serving, ranks, log, finish })
  const app = createGateway({
    serving,
    machine,
    version,
    wallMs: () => Date.now(),
    randomHex: (bytes) => cryptoEntropy.hex(bytes),
    pageDir: paths.pageDir,
    guard: {
      hostNames: [hostname(), `${settings.name}.local`, settings.listen, ...settings.allowedHosts],
      keyHashes: () => (settings.apiKey === null ? [] : [hashKey(settings.apiKey)]),
      adminToken: file.token,
      isLoopback: isLoopback(settings.listen),
    },
    cluster: clusterActions({
      machine,
      serving,
      store,
      nowMs: () => systemClock.nowMs(),
      stop: () => void stopper.stop('asked to stop'),
    }),
    logError: (error, path) => log.logger.error({ err: error, path }, 'a request failed'),
  })
  stopper.server = await listen(settings, getRequestListener(app.fetch))
  machine.start()
  await wantFirstModel({ settings, serving, store, machine })
  log.logger.info({ machine: self.id, name: self.name, port: settings.port, version }, 'up')
  return {
    url: `http://${urlHost(settings.listen)}:${settings.port}`,
    machine,
    serving,
    ended,
    stop: stopper.stop,
  }
}

function urlHost(listen: string): string {
  return listen === '0.0.0.0' || listen === '::' ? '127.0.0.1' : listen
}
