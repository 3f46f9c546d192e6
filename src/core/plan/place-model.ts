// The planner: given machines, links, a model and a wish, all sensible plans with their figures, best
// first, and the one to obey. It reads no clock, asks nobody, and never throws because the answer is no.
import { type Constants } from './cost/constants.ts'
import type { ChipFigures } from './cost/figures.ts'
import { fittedConstants } from './cost/fitted.ts'
import { whyNotRun } from './place/abilities.ts'
import type { Candidate } from './place/candidates.ts'
import { type Cluster, createCluster } from './place/cluster.ts'
import { explainLoser, explainWinner } from './place/explain.ts'
import { type FigureContext, planFigures, togetherRate } from './place/figures.ts'
import { type Bench, groupMemory } from './place/group.ts'
import { type Scored, compareScored } from './place/policy.ts'
import { type Found, search } from './place/search.ts'
import { fitsSomehow, shortageOf } from './place/shortage.ts'
import type {
  PlacementPlan,
  PlanFigures,
  PlanMachine,
  PlanOutcome,
  PlanRequest,
  PlannedGroup,
  RankedPlan,
} from './types.ts'

export interface PlaceOptions {
  readonly constants?: Constants
  readonly shop?: readonly ChipFigures[]
}

export function placeModel(request: PlanRequest, options: PlaceOptions = {}): PlanOutcome {
  const constants = options.constants ?? fittedConstants
  const { cluster, unknown } = createCluster({ ...request, constants })
  const warnings = unknown.map(
    (machine) =>
      `${machine.name} is left out: its chip is unknown and it was never measured; run "bushel probe"`,
  )
  const eligible = cluster.machines
    .filter(({ machine }) => mayServe(machine, request))
    .map(({ index }) => index)
  const pinned = cluster.machines
    .filter(({ machine }) => request.policy.pin.includes(machine.id))
    .map(({ index }) => index)
  const problem = pinProblem(request, cluster, eligible)
  if (problem !== null) return { kind: 'no-machines', message: problem }
  if (eligible.length === 0)
    return { kind: 'no-machines', message: noMachines(request, unknown.length) }
  const result = search(request, { cluster, eligible, pinned, constants })
  if (result.found.length === 0)
    return {
      kind: 'memory-short',
      shortage: shortageOf(request, { cluster, eligible, constants, shop: options.shop ?? [] }),
    }
  const without = new Map<number, boolean>()
  const context: FigureContext = {
    request,
    bench: result.bench,
    constants,
    regime: result.regime,
    runsWithout: (machine) => {
      let runs = without.get(machine)
      if (runs === undefined) {
        runs =
          result.found.some((found) => found.groups.length === 1 && !usesMachine(found, machine)) ||
          fitsSomehow(request, {
            cluster,
            constants,
            eligible: eligible.filter((index) => index !== machine),
          })
        without.set(machine, runs)
      }
      return runs
    },
  }
  return ranked(request, context, result.found, warnings)
}

function mayServe(machine: PlanMachine, request: PlanRequest): boolean {
  const { policy } = request
  if (machine.role === 'client') return false
  if (policy.avoid.includes(machine.id) || policy.keepFree.includes(machine.id)) return false
  return !machine.onBattery || policy.pin.includes(machine.id)
}

function pinProblem(
  request: PlanRequest,
  cluster: Cluster,
  eligible: readonly number[],
): string | null {
  for (const id of request.policy.pin) {
    const found = cluster.machines.find(({ machine }) => machine.id === id)
    if (found === undefined) return `the pinned machine "${id}" is not in the cluster`
    if (!eligible.includes(found.index))
      return `the pinned machine "${found.machine.name}" may not serve: it is a client, kept free or avoided`
  }
  return null
}

function noMachines(request: PlanRequest, unknown: number): string {
  if (request.machines.length === 0) return 'the cluster has no machines'
  if (unknown === request.machines.length)
    return 'nobody knows how fast these machines are: their chips are in no table and they were never measured; run "bushel probe"'
  return `none of the ${request.machines.length} machines may serve: they are clients, on battery, avoided, kept free or never measured`
}

const usesMachine = (found: Found, machine: number): boolean =>
  found.groups.some((candidate) => candidate.machines.includes(machine))

function ranked(
  request: PlanRequest,
  context: FigureContext,
  found: readonly Found[],
  warnings: readonly string[],
): PlanOutcome {
  const { goal } = request.policy
  const plans = found.map((entry) => {
    const figures = planFigures(context, entry)
    const plan = {
      placement: placementOf(context.bench, entry),
      figures,
      cannotRun: whyNotRun(
        entry.strategy,
        entry.groups[0]?.strategy ?? 'single',
        request.model.architecture,
        request.abilities,
      ),
    }
    return { plan, scored: scoredOf(request, entry, figures) }
  })
  const seen = new Set<string>()
  const sorted = plans
    .sort((a, b) => compareScored(goal, a.scored, b.scored))
    .filter(({ plan }) => {
      // Of plans that differ only in where layers were cut, the better one tells enough.
      const key = outlineOf(plan.placement)
      if (seen.has(key)) return false
      seen.add(key)
      return true
    })
  const runnable = sorted.filter((entry) => entry.plan.cannotRun === null)
  const others = sorted.filter((entry) => entry.plan.cannotRun !== null)
  const winner = runnable[0]?.plan ?? null
  const explained = (plan: Omit<RankedPlan, 'why' | 'kbFindings'>): RankedPlan => ({
    ...plan,
    ...(plan === winner ? explainWinner(goal, plan) : explainLoser(goal, plan, winner)),
  })
  const all = [...runnable, ...others].map((entry) => explained(entry.plan))
  return {
    kind: 'planned',
    plans: all,
    chosen: winner === null ? null : (all[0] ?? null),
    warnings,
  }
}

function outlineOf(placement: PlacementPlan): string {
  const groups = placement.groups.map((group) =>
    group.stages.map((stage) => `${stage.sharing}${stage.ranks.length}`).join('+'),
  )
  return `${placement.strategy}:${groups.join('|')}`
}

function scoredOf(request: PlanRequest, found: Found, figures: PlanFigures): Scored {
  const lead = found.rates[0]
  const survived = figures.losses.filter((loss) => loss.survives)
  const machineCount = found.groups.reduce((sum, candidate) => sum + candidate.machines.length, 0)
  return {
    answerSeconds: Math.min(...found.rates.map((rates) => rates.answerSeconds)),
    aloneRate: lead?.aloneRate ?? 0,
    loadedRate: togetherRate(request, found.rates),
    contextTokensLongest: figures.contextTokensLongest,
    tokensPerJoule: figures.tokensPerJoule,
    lossesSurvived: figures.losses.length === 0 ? 0 : survived.length / figures.losses.length,
    lossGapSeconds: Math.max(0, ...survived.map((loss) => loss.gapSeconds ?? 0)),
    machineCount,
  }
}

function placementOf(bench: Bench, found: Found): PlacementPlan {
  return {
    strategy: found.strategy,
    groups: found.groups.map((candidate) => groupOf(bench, candidate)),
  }
}

function groupOf(bench: Bench, candidate: Candidate): PlannedGroup {
  const memory = groupMemory(bench, candidate.group)
  let next = 0
  return {
    stages: candidate.group.stages.map((stage) => ({
      layers: { from: stage.from, to: stage.to },
      sharing: stage.sharing,
      world: stage.world?.backend ?? 'none',
      ranks: stage.members.flatMap((member) => {
        const machine = bench.cluster.machines[member.machine]?.machine
        const memoryBytes = memory[next++] ?? 0
        return machine === undefined
          ? []
          : [{ machine: machine.id, share: member.share, memoryBytes }]
      }),
    })),
  }
}
