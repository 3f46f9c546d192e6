// What machines ask of each other beside groups and models: what they are made of, programs, links, measurements.
import { availableParallelism, loadavg } from 'node:os'
import { systemClock } from '../../adapters/system-clock.ts'
import { loadPlanTables } from '../../models/plan-tables.ts'
import type { ModelStore } from '../../models/store.ts'
import type { Prober } from '../../ports/prober.ts'
import type { Machine, Notes } from '../../runtime/machine.ts'
import type { CliContext } from '../command.ts'
import type { DaemonLog } from '../log.ts'
import { type RankKnowledge, createLocalProber } from '../machines/local-prober.ts'
import { predictionFile } from '../plan/score-file.ts'
import { rankEnv, runtimePaths } from '../runtime-paths.ts'
import { type Settings, loadSettings } from '../settings.ts'
import { PlannerAdvisor } from './advisor.ts'
import { FactsExchange } from './facts-exchange.ts'
import { Launches } from './launch/launches.ts'
import { LinkMeasurements } from './link-measurements.ts'
import type { Peers } from './peers.ts'
import { MeasurementExchange } from './measurement-exchange.ts'
import { ProbeExchange } from './probe-exchange.ts'
import { ProbeJobs } from './probe-jobs.ts'
import type { RankEndpoints } from '../../adapters/peers/rank-endpoints.ts'
import { ScoreKeeper } from './score-keeper.ts'
import { TelemetryExchange } from './telemetry-exchange.ts'

export interface AroundMachines {
  readonly advisor: PlannerAdvisor
  readonly facts: FactsExchange
  readonly launches: Launches
  readonly links: LinkMeasurements
  readonly probes: ProbeExchange
  readonly scores: ScoreKeeper
  readonly telemetry: TelemetryExchange
}

export function aroundMachines(parts: {
  settings: Settings
  context: CliContext
  machine: Machine
  store: ModelStore
  peers: Peers
  endpoints: RankEndpoints
  ranks: RankKnowledge
  notes: Notes
  log: DaemonLog
}): AroundMachines {
  const { settings, context, peers, endpoints, notes } = parts
  const paths = runtimePaths(context)
  const machine = (): Machine => parts.machine
  const prober = (): Prober => createLocalProber(context, undefined, parts.ranks)
  const facts = new FactsExchange({
    machine,
    peers,
    prober,
    port: peers.port,
    links: () => links.linkFacts(),
  })
  const launches = new Launches({
    machine,
    peers,
    facts,
    endpoints,
    paths,
    home: settings.home,
    isAllowed: () => loadSettings({}, context.env).allowLaunch,
    notes,
  })
  const links: LinkMeasurements = new LinkMeasurements({
    machine,
    peers,
    facts,
    clock: systemClock,
    notes,
    atJoin: settings.measureLinks,
  })
  const measurements = new MeasurementExchange({ machine, peers, home: settings.home })
  const probes = new ProbeExchange({
    state: () => parts.machine.state,
    facts: () => facts.collect(),
    jobs: new ProbeJobs({
      self: () => parts.machine.state.self.id,
      peers,
      endpoints,
      program: { python: paths.python, workerDir: paths.workerDir, env: rankEnv(paths) },
    }),
    wallMs: () => Date.now(),
    keep: (measured) => measurements.share(measured),
  })
  const advisor = new PlannerAdvisor({
    machine: parts.machine,
    peers,
    recentFacts: facts,
    state: () => parts.machine.state,
    tables: () => loadPlanTables(context.programDir),
    home: settings.home,
    nowMs: () => systemClock.nowMs(),
    folderOf: ({ model }) => parts.store.byDigest(model.digest)?.path ?? null,
  })
  const scores = new ScoreKeeper({
    file: predictionFile(settings.home),
    nowMs: () => systemClock.nowMs(),
    wallMs: () => Date.now(),
    ownFacts: () => prober().probeMachine(),
    loadPerCore: () => (loadavg()[0] ?? 0) / availableParallelism(),
    warn: (text) => parts.log.logger.warn(text),
  })
  parts.machine.subscribe((state) => scores.look(state))
  const telemetry = new TelemetryExchange({ machine, peers, settings, context })
  return { advisor, facts, launches, links, probes, scores, telemetry }
}
