// The full figures of a plan that will be shown: ranges over what is not known, the longest context,
// energy, price and losses.
import type { Constants } from '../cost/constants.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { type Basis, rangeFactor } from '../cost/range.ts'
import { totalSeconds } from '../cost/terms.ts'
import { replicaShare } from '../rows/predict-row.ts'
import type { LossOutcome, PlanFigures, PlanRequest, Range } from '../types.ts'
import { energyOf, pricePerMillion } from './energy.ts'
import { type Bench, type Group, aloneTerms, bestLink, roofRate } from './group.ts'
import { lossesOf } from './losses.ts'
import { longestContext, rankMemoryByContext } from './memory.ts'
import { type Rates, groupRates } from './rates.ts'
import type { Found } from './search.ts'

export interface FigureContext {
  readonly request: PlanRequest
  readonly bench: Bench
  readonly constants: Constants
  readonly regime: CollectiveRegime
  readonly runsWithout: (machine: number) => boolean
}

function basisOf(
  bench: Bench,
  group: Group,
  phase: Basis['phase'],
  regime: CollectiveRegime,
): Basis {
  const members = group.stages.flatMap((stage) => stage.members)
  const figures = members.flatMap((member) => bench.cluster.machines[member.machine]?.figures ?? [])
  const links = group.stages
    .slice(1)
    .map((stage, index) => bestLink(bench, group.stages[index]?.members ?? [], stage.members))
  return {
    phase,
    regime,
    hop: links.some((link) => link !== null && link.class !== 'rdma') ? 'tcp' : 'rdma',
    measured: {
      memory: figures.every((figure) => figure.measured.memory),
      kernels: figures.every((figure) => figure.measured.kernels),
      matmul: figures.every((figure) => figure.measured.matmul),
      collectives: group.stages.every((stage) => stage.world === null || stage.world.measured),
      hops: links.every((link) => link?.hopSeconds !== undefined),
    },
    chips: members.map(
      (member) => bench.cluster.machines[member.machine]?.machine.chip?.key ?? 'unknown',
    ),
  }
}

/** Regimes that a group may meet: both, where RDMA collectives were not measured. */
function regimesOf(context: FigureContext, groups: readonly Group[]): CollectiveRegime[] {
  const open = groups.some((group) =>
    group.stages.some(
      (stage) => stage.world !== null && stage.world.backend === 'jaccl' && !stage.world.measured,
    ),
  )
  return open && context.request.regime === null ? ['slow', 'fast'] : [context.regime]
}

/** A figure over several readings: the middle of them, and a range that covers all. */
function over(readings: readonly { readonly value: number; readonly factor: number }[]): Range {
  const values = readings.map((reading) => reading.value)
  return {
    value: Math.sqrt(Math.min(...values) * Math.max(...values)),
    low: Math.min(...readings.map((reading) => reading.value / reading.factor)),
    high: Math.max(...readings.map((reading) => reading.value * reading.factor)),
  }
}

interface Reading {
  readonly rates: readonly Rates[]
  readonly decodeFactor: number
  readonly prefillFactor: number
}

export function planFigures(context: FigureContext, found: Found): PlanFigures {
  const { bench, request } = context
  const groups = found.groups.map((candidate) => candidate.group)
  const first = groups[0]
  const regimes = regimesOf(context, groups)
  const readings: Reading[] = regimes.map((regime) => {
    const rates = groups.map((group) =>
      groupRates(bench, group, regime, Math.ceil(request.concurrency / groups.length)),
    )
    const lead = rates[0]
    if (first === undefined || lead === undefined)
      return { rates, decodeFactor: 1, prefillFactor: 1 }
    return {
      rates,
      decodeFactor: rangeFactor(lead.alone, basisOf(bench, first, 'decode', regime)),
      prefillFactor: rangeFactor(lead.firstToken, basisOf(bench, first, 'prefill', regime)),
    }
  })
  const rate = over(
    readings.map((reading) => ({
      value: soonest(reading.rates)?.aloneRate ?? 0,
      factor: reading.decodeFactor,
    })),
  )
  const loaded = over(
    readings.map((reading) => ({
      value: togetherRate(request, reading.rates),
      factor: reading.decodeFactor,
    })),
  )
  const prompt = over(
    readings.map((reading) => ({
      value: soonest(reading.rates)?.firstTokenSeconds ?? Infinity,
      factor: reading.prefillFactor,
    })),
  )
  const energy = energyOf(bench, groups, loaded.value, context.regime)
  const machines = found.groups.flatMap((candidate) => candidate.machines)
  const losses: readonly LossOutcome[] = lossesOf(
    { bench, rereadSeconds: prompt.value, runsWithout: context.runsWithout },
    groups,
  )
  return {
    firstTokenSeconds: prompt,
    tokensPerSecondAlone: {
      ...rate,
      high: Math.min(rate.high, Math.max(...groups.map((group) => roofRate(bench, group)))),
    },
    tokensPerSecondFullContext: Math.max(
      ...groups.map(
        (group) => 1 / totalSeconds(aloneTerms(bench, group, context.regime, bench.decodeFull)),
      ),
    ),
    tokensPerSecondLoaded: loaded,
    contextTokensLongest: longestOf(context, groups),
    watts: energy.watts,
    tokensPerJoule: energy.tokensPerJoule,
    pricePerMillionTokens: pricePerMillion(bench, machines, energy, request.prices),
    losses,
    restsOn: restsOn(context, groups),
    regime: regimeOf(groups, regimes),
    decodeTerms:
      found.rates[0]?.alone ?? groupRates(bench, first ?? { stages: [] }, context.regime).alone,
  }
}

/** A request alone goes to the replica that has its answer first: that one's figures, not the best of each. */
function soonest(rates: readonly Rates[]): Rates | undefined {
  let best = rates[0]
  for (const one of rates)
    if (best !== undefined && one.answerSeconds < best.answerSeconds) best = one
  return best
}

/** What all groups do together at the asked concurrency. */
export function togetherRate(request: PlanRequest, rates: readonly Rates[]): number {
  if (rates.length <= 1) return rates[0]?.loadedRate ?? 0
  // One request keeps one replica busy, not all of them.
  const busy = Math.min(rates.length, request.concurrency)
  const sum = rates.slice(0, busy).reduce((total, one) => total + one.loadedRate, 0)
  return busy === 1 ? sum : sum * replicaShare
}

function longestOf(context: FigureContext, groups: readonly Group[]): number {
  const { bench, request } = context
  // A replica keeps room for all requests, so that it can take over from another.
  const { concurrency } = request
  const ranks = groups.flatMap((group) =>
    group.stages.flatMap(({ from, to, sharing, members }) =>
      members.map(({ machine, share }) => ({
        free: bench.cluster.machines[machine]?.machine.memoryFreeBytes ?? 0,
        needed: rankMemoryByContext(bench.memoryEmpty, { from, to, share, sharing, concurrency }),
      })),
    ),
  )
  return longestContext(
    (contextTokens) => ranks.every((rank) => rank.needed(contextTokens) <= rank.free),
    bench.work.contextTokensMax,
  )
}

function restsOn(context: FigureContext, groups: readonly Group[]): PlanFigures['restsOn'] {
  const flags = groups.flatMap((group) => {
    const { measured } = basisOf(context.bench, group, 'decode', context.regime)
    const used = [measured.memory]
    if (group.stages.some((stage) => stage.world !== null)) used.push(measured.collectives)
    if (group.stages.length > 1) used.push(measured.hops)
    if (usesMeasuredLink(context.bench, group)) used.push(true)
    return used
  })
  if (flags.every(Boolean)) return 'measured here'
  return flags.some(Boolean) ? 'partly measured here' : 'chip table'
}

function usesMeasuredLink(bench: Bench, group: Group): boolean {
  const hops = group.stages
    .slice(1)
    .map((stage, index) => bestLink(bench, group.stages[index]?.members ?? [], stage.members))
  const rings = group.stages.flatMap(({ world }) =>
    world === null || world.measured
      ? []
      : world.members.map((member, at) =>
          bench.cluster.link(member, world.members[(at + 1) % world.members.length] ?? member),
        ),
  )
  return [...hops, ...rings].some((link) => link?.measured !== undefined)
}

function regimeOf(
  groups: readonly Group[],
  regimes: readonly CollectiveRegime[],
): PlanFigures['regime'] {
  const worlds = groups.flatMap((group) => group.stages.flatMap((stage) => stage.world ?? []))
  if (worlds.every((world) => world.backend === 'ring' && !world.measured)) return null
  if (worlds.every((world) => world.measured)) return 'measured'
  return regimes.length > 1 ? 'either' : (regimes[0] ?? null)
}
