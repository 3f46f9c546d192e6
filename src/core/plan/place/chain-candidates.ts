// Pipelines, and tensor worlds in a row, of clusters with few enough sets of machines for all of them to
// be tried: the best of every size, whatever the machines, their order and the cut.
import {
  type Candidate,
  type CandidateMaker,
  alone,
  asGood,
  candidate,
  costKey,
  evenWorlds,
  keptCosts,
} from './candidates.ts'
import { type Chain, type ChainAsk, type ChainUnit, type StageSpans, timedChain } from './chains.ts'
import { type MachineClass, countsOfSize, membersOf } from './classes.ts'
import { type Group, answerHopSeconds } from './group.ts'
import { bestChains } from './paced-chains.ts'
import { splitLayers } from './split.ts'
import { type StageTemplate, stageSpans } from './stage-costs.ts'

/** Ranks of a world that is one of several stages. */
const worldSizes = [2, 4] as const

/** A stage made of the first machines of each class; a chain names others that are alike. */
interface Stage extends ChainUnit {
  readonly template: StageTemplate
  /** Which of the worlds that its machines can form. */
  readonly choice: number
}

type Templates = (members: readonly number[]) => readonly StageTemplate[]

/** `secondsMax` says how soon another plan has its answer: what takes longer need not be the best. */
export function chainCandidates(
  maker: CandidateMaker,
  classes: readonly MachineClass[],
  options: { readonly keep: (candidate: Candidate) => void; readonly secondsMax: () => number },
): void {
  const spans = new Map<string, StageSpans>()
  const spansOf = (template: StageTemplate): StageSpans => {
    const key = costKey(maker, template)
    let known = spans.get(key)
    if (known === undefined) {
      known = stageSpans(template, maker)
      spans.set(key, known)
    }
    return known
  }
  const chains = (ways: number, strategy: Candidate['strategy'], templates: Templates): void => {
    const stages: Stage[] = countsOfSize(classes, ways).flatMap((counts) =>
      templates(membersOf(classes, counts)).map((template, choice) => ({
        ...spansOf(template),
        counts,
        template,
        choice,
      })),
    )
    const secondsMax = options.secondsMax()
    for (const made of bestOf(maker, stages, { strategy, classes, templates, secondsMax }))
      options.keep(made)
  }
  chains(1, 'pipeline', ([machine]) => (machine === undefined ? [] : [alone(machine)]))
  const machineCount = classes.reduce((sum, { machines }) => sum + machines.length, 0)
  for (const ways of worldSizes)
    if (machineCount >= 2 * ways)
      chains(ways, 'tensor-pipeline', (members) => evenWorlds(maker, members))
}

/** Seconds of an answer's hops from any machine of a class to any other of a class, by both. */
function classHops(maker: CandidateMaker, classes: readonly MachineClass[]): number[][] {
  const { bench } = maker
  return classes.map((from) =>
    classes.map((to) => {
      const [a, b] = [from.machines[0], from === to ? to.machines[1] : to.machines[0]]
      const link = a === undefined || b === undefined ? null : bench.cluster.link(a, b)
      return link === null ? Infinity : answerHopSeconds(bench, link)
    }),
  )
}

function bestOf(
  maker: CandidateMaker,
  stages: readonly Stage[],
  options: {
    readonly strategy: Candidate['strategy']
    readonly classes: readonly MachineClass[]
    readonly templates: Templates
    readonly secondsMax: number
  },
): Candidate[] {
  const { classes } = options
  const between = classHops(maker, classes)
  const hops = new Float64Array(stages.length * stages.length)
  for (const [from, a] of stages.entries())
    for (const [to, b] of stages.entries())
      hops[from * stages.length + to] = quickestHop(between, a.counts, b.counts)
  const hop = (from: number, to: number): number => hops[from * stages.length + to] ?? Infinity
  const ask: ChainAsk = {
    units: stages,
    classes: classes.map(({ machines, pinned }) => ({ size: machines.length, pinned })),
    layerCount: maker.bench.work.layers.length,
    hop,
  }
  const chains = bestChains(ask, options.secondsMax)
  return [...chains.values()].flatMap((chain) => {
    const { units, bounds } = plainestOf(maker, stages, ask, chain)
    const taken = classes.map(() => 0)
    const group: Group = {
      stages: units.flatMap((unit, index) => {
        const stage = stages[unit]
        if (stage === undefined) return []
        const members = nextMembers(classes, stage.counts, taken)
        const template = options.templates(members)[stage.choice]
        return template === undefined
          ? []
          : [{ ...template, from: bounds[index] ?? 0, to: bounds[index + 1] ?? 0 }]
      }),
    }
    return candidate(options.strategy, group)
  })
}

/** The best hop between a machine of the one and a machine of the other. */
function quickestHop(
  between: readonly (readonly number[])[],
  a: readonly number[],
  b: readonly number[],
): number {
  let least = Infinity
  for (const [from, count] of a.entries()) {
    if (count === 0) continue
    for (const [to, other] of b.entries())
      if (other > 0) least = Math.min(least, between[from]?.[to] ?? Infinity)
  }
  return least
}

/** Machines of each class that no stage has taken yet. */
function nextMembers(
  classes: readonly MachineClass[],
  counts: readonly number[],
  taken: number[],
): number[] {
  return classes
    .flatMap(({ machines }, index) => {
      const from = taken[index] ?? 0
      const to = from + (counts[index] ?? 0)
      taken[index] = to
      return machines.slice(from, to)
    })
    .sort((a, b) => a - b)
}

/**
 * Among equal machines every order and cut takes an answer the same time: then the machines stand as
 * they were given, cut evenly, which serves several answers better.
 */
function plainestOf(
  maker: CandidateMaker,
  stages: readonly Stage[],
  ask: ChainAsk,
  chain: Chain,
): Chain {
  const kinds = new Set(chain.units.map((unit) => stages[unit]?.own))
  if (kinds.size > 1) return chain
  const inOrder = [...chain.units].sort((a, b) => a - b)
  for (const units of [inOrder, chain.units]) {
    const costs = units.flatMap((unit) => {
      const template = stages[unit]?.template
      return template === undefined ? [] : [keptCosts(maker, template, 'sum', 1)]
    })
    const bounds = splitLayers(costs, ask.layerCount, 'most')
    if (bounds === null) continue
    const plain = timedChain(ask, units, bounds)
    if (plain.seconds <= chain.seconds * asGood) return plain
  }
  return chain
}
