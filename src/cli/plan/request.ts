// Turns the words of a command line into a question for the planner, or into one clear complaint.
import { promptTokensIn } from '../../core/cluster/advice.ts'
import { parseCluster } from '../../core/plan/ask/cluster-string.ts'
import { nearest } from '../../core/plan/ask/nearest.ts'
import type { MachineId } from '../../core/ids.ts'
import type { CollectiveRegime } from '../../core/plan/cost/links.ts'
import type { PlanGoal, PlanMachine, PlanRequest, WorkerAbilities } from '../../core/plan/types.ts'
import { findModel } from '../../models/catalogue.ts'
import type { PlanTables } from '../../models/plan-tables.ts'
import { UserError, exitCodes } from '../command.ts'
import { asHeld } from './held.ts'
import type { ClusterAtHand, CurrentCluster } from './current-cluster.ts'

export interface PlanOptions {
  readonly cluster?: string
  readonly context: string
  readonly prompt?: string
  readonly concurrency: string
  readonly policy: string
  readonly pin?: string
  readonly avoid?: string
  readonly keepFree?: string
  readonly collectives?: string
  readonly assume?: string
}

const goals: readonly PlanGoal[] = ['fastest', 'throughput', 'context', 'power', 'survive']
const usage = (message: string): UserError => new UserError(message, { exitCode: exitCodes.usage })

function wholeNumber(text: string, what: string, max: number): number {
  const value = Number(text.replace(/k$/i, '')) * (/k$/i.test(text) ? 1024 : 1)
  if (!Number.isInteger(value) || value < 1 || value > max)
    throw usage(`--${what} is "${text}"; a whole number from 1 to ${max} is needed (8k works too)`)
  return value
}

function oneOf<Word extends string>(text: string, words: readonly Word[], what: string): Word {
  const found = words.find((word) => word === text.toLowerCase())
  if (found !== undefined) return found
  const meant = nearest(text, words)
  throw usage(
    `--${what} is "${text}"${meant === null ? '' : `; did you mean ${meant}?`} It must be one of ${words.join(', ')}`,
  )
}

function machinesNamed(
  text: string | undefined,
  machines: readonly PlanMachine[],
  what: string,
): MachineId[] {
  if (text === undefined) return []
  return text.split(',').map((word) => {
    const name = word.trim()
    const found = machines.find((machine) => machine.name === name || machine.id === name)
    if (found !== undefined) return found.id
    const meant = nearest(
      name,
      machines.map((machine) => machine.name),
    )
    throw usage(
      `--${what}: no machine is called "${name}"${meant === null ? '' : `; did you mean ${meant}?`} There are ${machines.map((machine) => machine.name).join(', ')}`,
    )
  })
}

function assumed(text: string | undefined, abilities: WorkerAbilities): WorkerAbilities {
  if (text === undefined) return abilities
  const words: Readonly<Record<string, keyof WorkerAbilities>> = {
    pipeline: 'pipeline',
    tensor: 'tensor',
    'uneven-tensor': 'unevenTensor',
    'tensor-pipeline': 'tensorPipeline',
    expert: 'expert',
    replicas: 'replicas',
  }
  const all = {
    pipeline: true,
    tensor: true,
    unevenTensor: true,
    tensorPipeline: true,
    expert: true,
    replicas: true,
  }
  if (text === 'all') return all
  const granted = { ...abilities }
  for (const word of text.split(',')) {
    const key = words[oneOf(word.trim(), Object.keys(words), 'assume')]
    if (key !== undefined) granted[key] = true
  }
  return granted
}

async function clusterOf(
  options: PlanOptions,
  tables: PlanTables,
  current: CurrentCluster,
): Promise<ClusterAtHand & { notes: readonly string[] }> {
  if (options.cluster === undefined) {
    const atHand = await current()
    if (atHand === null)
      throw new UserError(
        'no Bushel daemon runs here, so there is no cluster to plan for; start it with "bushel up", or name machines with --cluster 4xM3Ultra-512,tb5-mesh',
        { exitCode: exitCodes.daemonMissing },
      )
    return { ...atHand, notes: atHand.stale }
  }
  const parsed = parseCluster(options.cluster, tables)
  if (parsed.kind === 'misread') throw usage(parsed.message)
  return {
    machines: parsed.machines,
    links: parsed.links,
    worlds: [],
    stale: [],
    inFloat32: false,
    notes: parsed.notes,
  }
}

export async function buildRequest(
  model: string,
  options: PlanOptions,
  given: {
    readonly tables: PlanTables
    readonly current: CurrentCluster
    readonly prices: PlanRequest['prices']
  },
): Promise<{ request: PlanRequest; notes: readonly string[] }> {
  const { tables } = given
  const listed = findModel(model, tables)
  if (listed.kind === 'unknown' && options.cluster !== undefined) throw usage(listed.message)
  const cluster = await clusterOf(options, tables, given.current)
  // What is in no catalogue may lie on this machine's disk.
  const folder = cluster.folders?.get(model.toLowerCase())
  const found =
    listed.kind === 'unknown' && folder !== undefined ? findModel(folder, tables) : listed
  if (found.kind === 'unknown') throw usage(found.message)
  const contextTokens = wholeNumber(options.context, 'context', 100_000_000)
  const limit = found.model.shape.contextTokensMax
  if (contextTokens > limit)
    throw usage(
      `--context ${options.context}: ${found.model.name} was made for at most ${limit} tokens`,
    )
  const regimes: readonly CollectiveRegime[] = ['fast', 'slow']
  return {
    notes: cluster.notes,
    request: {
      machines: cluster.machines,
      links: cluster.links,
      worlds: cluster.worlds,
      model: asHeld(found.model, cluster.inFloat32),
      contextTokens,
      promptTokens:
        options.prompt === undefined
          ? promptTokensIn(contextTokens)
          : Math.min(contextTokens, wholeNumber(options.prompt, 'prompt', 100_000_000)),
      concurrency: wholeNumber(options.concurrency, 'concurrency', 4096),
      policy: {
        goal: oneOf(options.policy, goals, 'policy'),
        pin: machinesNamed(options.pin, cluster.machines, 'pin'),
        avoid: machinesNamed(options.avoid, cluster.machines, 'avoid'),
        keepFree: machinesNamed(options.keepFree, cluster.machines, 'keep-free'),
      },
      abilities: assumed(options.assume, tables.abilities),
      regime:
        options.collectives === undefined
          ? null
          : oneOf(options.collectives, regimes, 'collectives'),
      prices: given.prices,
    },
  }
}
