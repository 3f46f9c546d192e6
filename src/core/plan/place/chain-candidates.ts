// Pipelines, and tensor worlds in a row, of clusters small enough for all of them to be tried: the best
// of every size, whatever the machines, their order and the cut.
import {
  type Candidate,
  type CandidateMaker,
  alone,
  candidate,
  costKey,
  evenWorlds,
} from './candidates.ts'
import { type Chain, type ChainUnit, type StageSpans, bestChains, spanSeconds } from './chains.ts'
import { type Group, answerHopSeconds, bestLink } from './group.ts'
import { splitLayers } from './split.ts'
import { type StageTemplate, stageCosts, stageSpans } from './stage-costs.ts'

/** Ranks of a world that is one of several stages. */
const worldSizes = [2, 4] as const

/** Sums this close are the same time, added up differently. */
const asGood = 1 + 1e-12

interface Stage extends ChainUnit {
  readonly template: StageTemplate
}

export function chainCandidates(
  maker: CandidateMaker,
  eligible: readonly number[],
  pinned: readonly number[],
): Candidate[] {
  const spans = new Map<string, StageSpans>()
  const stageOf = (template: StageTemplate): Stage => {
    const key = costKey(maker, template)
    let known = spans.get(key)
    if (known === undefined) {
      known = stageSpans(template, maker)
      spans.set(key, known)
    }
    let mask = 0
    for (const { machine } of template.members) mask |= 1 << eligible.indexOf(machine)
    return { ...known, mask, template }
  }
  let mustUse = 0
  for (const machine of pinned) mustUse |= 1 << eligible.indexOf(machine)
  const chains = (stages: readonly Stage[], strategy: Candidate['strategy']): Candidate[] =>
    bestOf(maker, stages, { strategy, machineCount: eligible.length, pinned: mustUse })
  const found = chains(
    eligible.map((machine) => stageOf(alone(machine))),
    'pipeline',
  )
  for (const ways of worldSizes) {
    if (eligible.length < 2 * ways) continue
    const stages = subsetsOf(eligible, ways).flatMap((part) => evenWorlds(maker, part).map(stageOf))
    found.push(...chains(stages, 'tensor-pipeline'))
  }
  return found
}

function subsetsOf(items: readonly number[], size: number): number[][] {
  if (size === 0) return [[]]
  return items.flatMap((item, index) =>
    subsetsOf(items.slice(index + 1), size - 1).map((rest) => [item, ...rest]),
  )
}

function bestOf(
  maker: CandidateMaker,
  stages: readonly Stage[],
  options: {
    readonly strategy: Candidate['strategy']
    readonly machineCount: number
    readonly pinned: number
  },
): Candidate[] {
  const { bench } = maker
  const hops = new Float64Array(stages.length * stages.length)
  for (const [from, a] of stages.entries())
    for (const [to, b] of stages.entries()) {
      const link =
        (a.mask & b.mask) === 0 ? bestLink(bench, a.template.members, b.template.members) : null
      hops[from * stages.length + to] = link === null ? Infinity : answerHopSeconds(bench, link)
    }
  const hop = (from: number, to: number): number => hops[from * stages.length + to] ?? Infinity
  const layerCount = bench.work.layers.length
  const chains = bestChains({ ...options, units: stages, layerCount, hop })
  return [...chains.values()].flatMap((chain) => {
    const { units, bounds } = plainestOf(maker, stages, hop, chain)
    const group: Group = {
      stages: units.flatMap((unit, index) => {
        const template = stages[unit]?.template
        return template === undefined
          ? []
          : [{ ...template, from: bounds[index] ?? 0, to: bounds[index + 1] ?? 0 }]
      }),
    }
    return candidate(options.strategy, group)
  })
}

/**
 * Among equal machines every order and cut takes an answer the same time: then the machines stand as
 * they were given, cut evenly, which serves several answers better.
 */
function plainestOf(
  maker: CandidateMaker,
  stages: readonly Stage[],
  hop: (from: number, to: number) => number,
  chain: Chain,
): Pick<Chain, 'units' | 'bounds'> {
  const { bench, regime } = maker
  const layerCount = bench.work.layers.length
  const inOrder = [...chain.units].sort((a, b) => a - b)
  for (const units of [inOrder, chain.units]) {
    const costs = units.flatMap((unit) => {
      const stage = stages[unit]
      if (stage === undefined) return []
      const key = `sum;1;${costKey(maker, stage.template)}`
      let known = maker.costs.get(key)
      if (known === undefined) {
        known = stageCosts(stage.template, { bench, regime, aim: 'sum', rows: 1 })
        maker.costs.set(key, known)
      }
      return [known]
    })
    const bounds = splitLayers(costs, layerCount, 'most')
    if (bounds === null) continue
    let seconds = 0
    for (const [index, unit] of units.entries()) {
      const stage = stages[unit]
      if (stage !== undefined)
        seconds += spanSeconds(stage, bounds[index] ?? 0, bounds[index + 1] ?? 0)
      if (index > 0) seconds += hop(units[index - 1] ?? 0, unit)
    }
    if (seconds <= chain.seconds * asGood) return { units, bounds }
  }
  return chain
}
