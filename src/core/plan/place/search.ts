// The search: every sensible set of machines, every strategy on it, and of each kind of plan the one
// that serves the goal best.
import { assertNever } from '../../assert.ts'
import type { Constants } from '../cost/constants.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { modelWork, storedBytes } from '../model/work.ts'
import type { PlanGoal, PlanRequest, StrategyName } from '../types.ts'
import {
  type Candidate,
  type CandidateMaker,
  expertCandidates,
  pipelineCandidates,
  singleCandidates,
  tensorCandidates,
  tensorPipelineCandidates,
} from './candidates.ts'
import { whyNotRun } from './abilities.ts'
import { chainCandidates } from './chain-candidates.ts'
import { machineClasses } from './classes.ts'
import type { Cluster } from './cluster.ts'
import { type Bench, createBench } from './group.ts'
import { quickScore } from './policy.ts'
import { type Rates, groupRates } from './rates.ts'
import { areFew, machineSets, sizesUpTo } from './sets.ts'
import type { SplitAim } from './split.ts'

export interface Found {
  readonly strategy: StrategyName
  readonly groups: readonly Candidate[]
  readonly rates: readonly Rates[]
}

export interface SearchResult {
  readonly bench: Bench
  readonly found: readonly Found[]
  readonly regime: CollectiveRegime
}

const worldRanksMax = 16

function aimsOf(goal: PlanGoal): readonly SplitAim[] {
  if (goal === 'throughput') return ['slowest', 'sum']
  if (goal === 'context') return ['room', 'sum']
  return ['sum']
}

export function createMaker(
  bench: Bench,
  request: PlanRequest,
  regime: CollectiveRegime,
): CandidateMaker {
  return {
    bench,
    shape: request.model.shape,
    regime,
    aims: aimsOf(request.policy.goal),
    clusterSize: bench.cluster.machines.length,
    costs: new Map(),
    splits: new Map(),
    ranks: new Map(),
    worlds: new Map(),
  }
}

export function requestBench(request: PlanRequest, cluster: Cluster, constants: Constants): Bench {
  return createBench({
    cluster,
    work: modelWork(request.model.shape, request.model.format),
    constants,
    contextTokens: request.contextTokens,
    promptTokens: request.promptTokens,
    concurrency: request.concurrency,
    mergesRows: request.model.architecture.batching === 'merged',
  })
}

/** All candidates of one set of machines; of chains of stages only where they were not found already. */
function onSet(
  maker: CandidateMaker,
  members: readonly number[],
  chainsFound: boolean,
): Candidate[] {
  const first = members[0]
  if (first === undefined) return []
  if (members.length === 1) return singleCandidates(maker, first)
  const candidates = chainsFound ? [] : pipelineCandidates(maker, members)
  if (members.length <= worldRanksMax) {
    candidates.push(...tensorCandidates(maker, members), ...expertCandidates(maker, members))
    if (chainsFound) return candidates
    for (const ways of [2, 4]) candidates.push(...tensorPipelineCandidates(maker, members, ways))
  }
  return candidates
}

function freeBytes(cluster: Cluster, members: readonly number[]): number {
  let bytes = 0
  for (const index of members) bytes += cluster.machines[index]?.machine.memoryFreeBytes ?? 0
  return bytes
}

/** Candidates of one strategy only, for copies of a plan. */
function sameOnSet(
  maker: CandidateMaker,
  members: readonly number[],
  like: Candidate,
): readonly Candidate[] {
  switch (like.strategy) {
    case 'single':
      return singleCandidates(maker, members[0] ?? 0)
    case 'pipeline':
      return pipelineCandidates(maker, members)
    case 'expert':
      return expertCandidates(maker, members)
    case 'tensor-pipeline':
      return tensorPipelineCandidates(maker, members, like.group.stages[0]?.members.length ?? 2)
    case 'tensor':
    case 'uneven-tensor':
      return tensorCandidates(maker, members).filter((made) => made.strategy === like.strategy)
    case 'replicas':
      return []
    default:
      return assertNever(like.strategy)
  }
}

export function search(
  request: PlanRequest,
  options: {
    readonly cluster: Cluster
    readonly eligible: readonly number[]
    readonly pinned: readonly number[]
    readonly constants: Constants
  },
): SearchResult {
  const regime = request.regime ?? 'slow'
  const { goal } = request.policy
  const bench = requestBench(request, options.cluster, options.constants)
  const maker = createMaker(bench, request, regime)
  const kept = new Map<string, Kept>()
  const weights = storedBytes(bench.work)
  // Of what can be run.
  let answerSecondsLeast = Infinity
  const keep = (candidate: Candidate): void => {
    const rates = groupRates(bench, candidate.group, regime)
    const score = quickScore(goal, rates)
    if (!Number.isFinite(score) || score <= 0) return
    if (rates.answerSeconds < answerSecondsLeast && canRun(request, candidate.strategy))
      answerSecondsLeast = rates.answerSeconds
    const key = `${candidate.strategy}/${candidate.machines.length}/${candidate.aim}`
    const best = kept.get(key)
    if (best === undefined || score > best.score) kept.set(key, { candidate, rates, score })
  }
  const classes = machineClasses(options.cluster, options.eligible, options.pinned)
  const exact = areFew(classes)
  // Other goals also cut layers in other ways, along the orders that are likely to be good.
  const chainsFound = exact && maker.aims.every((aim) => aim === 'sum')
  for (const members of machineSets(options.cluster, classes)) {
    if (freeBytes(options.cluster, members) < weights) continue
    for (const candidate of onSet(maker, members, chainsFound)) keep(candidate)
  }
  if (exact) chainCandidates(maker, classes, { keep, secondsMax: () => answerSecondsLeast })
  const found: Found[] = worthTelling([...kept.values()], options.eligible.length).map(
    ({ candidate, rates }) => ({
      strategy: candidate.strategy,
      groups: [candidate],
      rates: [rates],
    }),
  )
  found.push(...replicas(maker, found, options.eligible, options.pinned))
  return { bench, found, regime }
}

interface Kept {
  readonly candidate: Candidate
  readonly rates: Rates
  readonly score: number
}

/** The best of each strategy, and of large clusters every other size: nobody reads sixty plans. */
function worthTelling(kept: readonly Kept[], machineCount: number): readonly Kept[] {
  const sizes = new Set(sizesUpTo(machineCount))
  const best = new Map<StrategyName, number>()
  for (const { candidate, score } of kept)
    best.set(candidate.strategy, Math.max(score, best.get(candidate.strategy) ?? 0))
  return kept.filter(
    ({ candidate, score }) =>
      sizes.has(candidate.machines.length) || score === best.get(candidate.strategy),
  )
}

function canRun({ model, abilities }: PlanRequest, strategy: StrategyName): boolean {
  return whyNotRun(strategy, strategy, model.architecture, abilities) === null
}

/** Copies of a plan on machines it does not use, as many as fit. */
function replicas(
  maker: CandidateMaker,
  found: readonly Found[],
  eligible: readonly number[],
  pinned: readonly number[],
): Found[] {
  const results: Found[] = []
  for (const base of found) {
    const first = base.groups[0]
    if (first === undefined || first.machines.length * 2 > eligible.length) continue
    const groups = [first]
    const used = new Set(first.machines)
    for (;;) {
      const left = eligible.filter((index) => !used.has(index))
      const next = bestCopy(maker, first, left)
      if (next === null) break
      groups.push(next)
      for (const machine of next.machines) used.add(machine)
    }
    if (groups.length < 2 || !pinned.every((index) => used.has(index))) continue
    results.push({
      strategy: 'replicas',
      groups,
      rates: groups.map((group) =>
        groupRates(
          maker.bench,
          group.group,
          maker.regime,
          Math.ceil(maker.bench.concurrency / groups.length),
        ),
      ),
    })
  }
  return results
}

function bestCopy(
  maker: CandidateMaker,
  like: Candidate,
  left: readonly number[],
): Candidate | null {
  const size = like.machines.length
  if (left.length < size) return null
  let best: Candidate | null = null
  let bestScore = 0
  const sets = size === 1 ? left.map((index) => [index]) : copySets(maker, left, size)
  for (const members of sets)
    for (const candidate of sameOnSet(maker, members, like)) {
      const score = 1 / groupRates(maker.bench, candidate.group, maker.regime).answerSeconds
      if (score > bestScore) {
        best = candidate
        bestScore = score
      }
    }
  return best
}

/** Neighbours of each machine left: enough to find the next pod of a cluster cabled in pods. */
function copySets(maker: CandidateMaker, left: readonly number[], size: number): number[][] {
  const { cluster } = maker.bench
  const seed = left[0]
  if (seed === undefined) return []
  const quality = (index: number): number => {
    const link = cluster.link(seed, index)
    return link === null ? -1 : link.class === 'rdma' ? 1e12 : link.bytesPerSecond
  }
  const near = left.slice(1).sort((a, b) => quality(b) - quality(a))
  return [[seed, ...near.slice(0, size - 1)], left.slice(0, size)]
}
