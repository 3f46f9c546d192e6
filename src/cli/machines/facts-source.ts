// Where a command gets its facts from: a folder of captures, the running cluster, or this machine alone.
import {
  CaptureFolderError,
  readCaptureFolders,
} from '../../adapters/probers/access/capture-folder.ts'
import { replay } from '../../adapters/probers/access/recording.ts'
import { createLinuxProber } from '../../adapters/probers/linux/linux-prober.ts'
import { createMacProber } from '../../adapters/probers/mac/mac-prober.ts'
import { pathTargets } from '../../core/doctor/run-doctor.ts'
import type { LinkFact } from '../../core/links/link-fact.ts'
import type { MachineFacts, PathFacts } from '../../core/machine-facts/machine.ts'
import type { Prober } from '../../ports/prober.ts'
import { type CliContext, UserError } from '../command.ts'
import { askCluster } from './cluster-facts.ts'
import { createLocalProber, localName } from './local-prober.ts'

export interface CollectedFacts {
  readonly machines: readonly MachineFacts[]
  readonly paths: readonly PathFacts[]
  /** What the links carry, as measured; captures and a machine alone tell nothing of it. */
  readonly links: readonly LinkFact[]
  /** The machine we run on, where fixes can be applied; null for captures. */
  readonly local: string | null
}

export interface FactsOptions {
  readonly from?: string
  /** Comma-separated names: only these, in this order. */
  readonly machines?: string
}

/** Where peers of ours listen: the port after the API's. */
export function peerPort(env: CliContext['env']): number {
  return Number(env['BUSHEL_PORT'] ?? 28743) + 1
}

export async function collectFacts(
  context: CliContext,
  options: FactsOptions,
): Promise<CollectedFacts> {
  const all = await collectAll(context, options)
  return options.machines === undefined ? all : pick(all, options.machines)
}

async function collectAll(context: CliContext, options: FactsOptions): Promise<CollectedFacts> {
  if (options.from !== undefined) return factsFromCaptures(context, options.from)
  const cluster = await askCluster(context)
  if (cluster !== null) return cluster
  context.out.note(
    'No cluster is running here, so this is what one machine sees. Start one with "bushel up", or give captures with --from.',
  )
  const facts = await createLocalProber(context).probeMachine()
  return { machines: [facts], paths: [], links: [], local: localName() }
}

async function factsFromCaptures(context: CliContext, folder: string): Promise<CollectedFacts> {
  try {
    const machines = await readCaptureFolders(folder)
    const probers = machines.map(({ name, platform, description, recording }): Prober => {
      const components = {
        name,
        access: replay(recording),
        nowMs: () => description.observedAtMs ?? 0,
        self: description.self ?? null,
        runtimePython: 'python',
      }
      return platform === 'macos'
        ? createMacProber(components)
        : createLinuxProber({ ...components, linkSettings: {} })
    })
    const facts = await Promise.all(probers.map((prober) => prober.probeMachine()))
    const targets = pathTargets(facts, peerPort(context.env))
    const paths = await Promise.all(
      probers.map((prober, index) =>
        prober.probePaths(targets.get(facts[index]?.name ?? '') ?? []),
      ),
    )
    return { machines: facts, paths: paths.flat(), links: [], local: null }
  } catch (error) {
    if (error instanceof CaptureFolderError) throw new UserError(error.message, { cause: error })
    throw error
  }
}

function pick(all: CollectedFacts, names: string): CollectedFacts {
  const wanted = names.split(',').map((name) => name.trim())
  const machines = wanted.map((name) => {
    const found = all.machines.find((one) => one.name === name)
    if (found === undefined)
      throw new UserError(
        `No machine is called "${name}"; there are ${all.machines.map((one) => one.name).join(', ')}`,
      )
    return found
  })
  const among = (name: string): boolean => wanted.includes(name)
  return {
    ...all,
    machines,
    paths: all.paths.filter((path) => among(path.machine) && among(path.peer)),
    links: all.links.filter((link) => link.ends.every((end) => among(end.machine))),
  }
}
