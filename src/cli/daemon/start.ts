// Puts a daemon together: adapters into ports, ports into the loop, the loop under the gateway. This is
// the one place that knows every concrete part.
import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { cryptoEntropy } from '../../adapters/crypto-entropy.ts'
import { DiskJournal } from '../../adapters/disk-journal.ts'
import { FailedStarts } from '../../adapters/failed-starts.ts'
import { type Identity, loadIdentity } from '../../adapters/identity.ts'
import { endLeftRanks } from '../../adapters/left-ranks.ts'
import type { RankEndpoints, RankLink } from '../../adapters/peers/rank-endpoints.ts'
import { RankProcesses } from '../../adapters/rank-process.ts'
import { systemClock } from '../../adapters/system-clock.ts'
import { initialState } from '../../core/cluster/state.ts'
import type { MachineId } from '../../core/ids.ts'
import { createGateway } from '../../gateway/app.ts'
import type { GatewayApp } from '../../gateway/context.ts'
import { hashKey } from '../../gateway/guard.ts'
import { ollamaListener } from '../../gateway/ollama/routes.ts'
import { ModelStore } from '../../models/store.ts'
import type { AttemptHost } from '../../runtime/attempts.ts'
import { watchIdle } from '../../runtime/idle-unload.ts'
import { watchRoom } from '../../runtime/make-room.ts'
import { Machine, type Notes } from '../../runtime/machine.ts'
import { RankSupervisor } from '../../runtime/ranks.ts'
import { MemoryWatch } from '../../runtime/memory-watch.ts'
import { Serving } from '../../runtime/serving.ts'
import { wireTraffic } from '../../runtime/traffic.ts'
import { WorldStarts } from '../../runtime/world-starts.ts'
import { clusterActions } from '../cluster-actions.ts'
import { type CliContext, UserError } from '../command.ts'
import { type DaemonFile, releaseDaemonFile, takeDaemonFile } from '../daemon-file.ts'
import { importGguf } from '../import-gguf.ts'
import { type DaemonLog, openLog } from '../log.ts'
import { lastMeasuredMs } from '../probe/measurement-file.ts'
import { type RuntimePaths, rankEnv, requirePython, runtimePaths } from '../runtime-paths.ts'
import type { RankKnowledge } from '../machines/local-prober.ts'
import type { Settings } from '../settings.ts'
import { readVersion } from '../version.ts'
import { type AroundMachines, aroundMachines } from './around-machines.ts'
import { wantFirstModel } from './first-model.ts'
import { listen } from './listen.ts'
import { rankEndpoints } from './rank-endpoints.ts'
import { membershipActions } from './membership-actions.ts'
import { ModelFetches } from './model-fetcher.ts'
import { modelActions } from './model-actions.ts'
import { Peers, watchBelonging } from './peers.ts'
import { describeSelf } from './self.ts'
import { type Stopper, createStopper } from './stopper.ts'

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

async function assemble(assembly: Assembly): Promise<Daemon> {
  const { settings } = assembly
  const parts = await buildParts(assembly)
  const { machine, serving, peers, log } = parts
  let finish: () => void = () => undefined
  const ended = new Promise<void>((resolve) => (finish = resolve))
  const stopper = createStopper({ ...parts, settings, finish })
  const app = buildGateway(assembly, parts, () => void stopper.stop('asked to stop'))
  await openListeners(settings, app, stopper)
  await peers.start()
  machine.start()
  await wantFirstModel({ settings, serving, store: parts.store, machine })
  const { id, name, version } = machine.state.self
  log.logger.info({ machine: id, name, port: settings.port, version }, 'up')
  const url = `http://${urlHost(settings.listen)}:${settings.port}`
  return { url, machine, serving, ended, stop: stopper.stop }
}

async function openListeners(settings: Settings, app: GatewayApp, stopper: Stopper): Promise<void> {
  const { listen: host, port, ollamaPort } = settings
  const advice = 'choose one with --port or BUSHEL_PORT'
  const own = await listen({ listen: host, port, advice }, getRequestListener(app.fetch))
  stopper.servers.push(own)
  if (ollamaPort === null) return
  const where = {
    listen: host,
    port: ollamaPort,
    advice: 'stop it (it may be Ollama itself), or choose another one with --ollama PORT',
  }
  try {
    stopper.servers.push(await listen(where, getRequestListener(ollamaListener(app).fetch)))
  } catch (error) {
    own.close()
    throw error
  }
}

interface Parts extends AroundMachines {
  readonly machine: Machine
  readonly serving: Serving
  readonly store: ModelStore
  readonly ranks: RankSupervisor
  readonly peers: Peers
  readonly log: DaemonLog
}

async function buildParts({ settings, context }: Assembly): Promise<Parts> {
  const paths = runtimePaths(context)
  const log = openLog(settings.home, settings.logLevel)
  const notes: Notes = { note: (level, text, about) => log.logger[level](about, text) }
  const identity = await loadIdentity(join(settings.home, 'identity', 'machine.key'))
  const store = new ModelStore({
    starterDir: paths.starterDir,
    homeDir: settings.home,
    env: context.env,
    importGguf: (source, destination) => importGguf({ paths, source, destination }),
  })
  const left = await endLeftRanks(identity.id)
  if (left.length > 0)
    log.logger.warn({ pids: left }, 'ended ranks that an earlier daemon had left')
  const { models, warnings } = await store.refresh()
  for (const warning of warnings) log.logger.warn(warning)
  const journal = new DiskJournal(join(settings.home, 'state'))
  const loaded = journal.load()
  if (loaded.warning !== null) context.out.note(`bushel: ${loaded.warning}`)
  const self = describeSelf({
    identity,
    settings,
    version: readVersion(context.programDir),
    journal: loaded.content,
    models: models.map((model) => model.ref),
  })
  const { ranks, knowledge } = superviseRanks({
    settings,
    paths,
    identity,
    store,
    log,
    notes,
    machine: () => machine,
    endpoints: () => endpoints,
  })
  const peers = new Peers({ settings, identity, self, notes, machine: () => machine })
  const { network } = peers
  const links = (): readonly RankLink[] => around.links.links()
  const endpoints = rankEndpoints({ self: self.id, settings, links, machine: () => machine })
  const fetches = new ModelFetches({ machine: () => machine, peers, store, notes })
  const clock = systemClock
  const machine: Machine = new Machine(
    initialState(self, {
      ...loaded.content,
      nowMs: clock.nowMs(),
      hasPlanner: true,
      measuredMs: lastMeasuredMs(settings.home),
    }),
    {
      clock,
      entropy: cryptoEntropy,
      network,
      journal,
      ranks,
      models: fetches,
      facts: { collect: () => void around.facts.learn() },
      advisor: { ask: (question) => void around.advisor.ask(question) },
      notes,
    },
  )
  const traffic = wireTraffic({ machine, network, local: ranks.attempts, clock, ranks })
  watchBelonging(machine, peers)
  const hostOn = (id: MachineId): AttemptHost => traffic.hostOn(id)
  const serving = new Serving({
    machine,
    clock,
    entropy: cryptoEntropy,
    hostOn,
    keepAliveMs: settings.keepAliveMs,
  })
  watchIdle({ machine, attempts: ranks.attempts, clock, notes })
  watchRoom({ machine, clock, notes })
  const about = {
    settings,
    context,
    machine,
    store,
    peers,
    endpoints,
    notes,
    log,
    ranks: knowledge,
  }
  const around: AroundMachines = aroundMachines(about)
  ranks.attempts.watchReads((group, read) => around.scores.haveRead(group, read))
  return { machine, serving, store, ranks, peers, log, ...around }
}

function superviseRanks(parts: {
  settings: Settings
  paths: RuntimePaths
  identity: Identity
  store: ModelStore
  log: DaemonLog
  notes: Notes
  machine: () => Machine
  endpoints: () => RankEndpoints
}): { ranks: RankSupervisor; knowledge: RankKnowledge } {
  const { settings, paths, identity, store, log, notes } = parts
  const processes = new RankProcesses({
    python: paths.python,
    workerDir: paths.workerDir,
    logDir: join(settings.home, 'logs'),
    machine: identity.id,
    env: rankEnv(paths),
    warn: (text, about) => log.logger.warn(about, text),
  })
  const failedStarts = new FailedStarts({
    path: join(settings.home, 'state', 'failed-starts.json'),
    bootMs: () => Date.now() - uptime() * 1000,
    warn: (text) => log.logger.warn(text),
  })
  const ranks = new RankSupervisor({
    clock: systemClock,
    launcher: new MemoryWatch(new WorldStarts(processes, () => failedStarts.add()), {
      clock: systemClock,
      availableBytes: () => process.availableMemory(),
      onHeld: (reason) => quarantine(parts.machine(), reason, notes),
    }),
    filesOf: (digest) => store.byDigest(digest),
    endpoints: {
      reserve: (plan, wanted, done) => parts.endpoints().reserve(plan, wanted, done),
      dialable: (endpoint, id) => parts.endpoints().dialable(endpoint, id),
    },
    post: (input) => parts.machine().post(input),
    notes,
  })
  const knowledge = {
    expectedRankPids: () => ranks.livePids(),
    failedStartsThisBoot: () => failedStarts.count(),
  }
  return { ranks, knowledge }
}

/** No new rank here while memory is missing; what is being stopped stays so. */
function quarantine(machine: Machine, reason: string | null, notes: Notes): void {
  const { accepts } = machine.state.self
  if (!accepts.ok && !accepts.reason.startsWith(quarantined)) return
  notes.note(reason === null ? 'info' : 'warn', reason ?? 'the missing memory is back', {})
  machine.post({
    kind: 'self-change',
    change: {
      accepts: { ok: reason === null, reason: reason === null ? '' : `${quarantined}${reason}` },
    },
  })
}

const quarantined = 'quarantined: '

function buildGateway(
  { settings, context, file }: Assembly,
  parts: Parts,
  stop: () => void,
): GatewayApp {
  const { machine, serving, store, peers, log } = parts
  return createGateway({
    serving,
    machine,
    version: machine.state.self.version,
    wallMs: () => Date.now(),
    randomHex: (bytes) => cryptoEntropy.hex(bytes),
    pageDir: runtimePaths(context).pageDir,
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
      facts: parts.facts,
      telemetry: parts.telemetry,
      launches: parts.launches,
      probes: parts.probes,
      scores: parts.scores,
      advise: (asked) => parts.advisor.askFresh(asked),
      membership: membershipActions({ machine, peers, links: parts.links }),
      nowMs: () => systemClock.nowMs(),
      stop,
    }),
    models: modelActions({ store, machine, serving, env: context.env }),
    logError: (error, path) => log.logger.error({ err: error, path }, 'a request failed'),
  })
}

function urlHost(listen: string): string {
  return listen === '0.0.0.0' || listen === '::' ? '127.0.0.1' : listen
}
