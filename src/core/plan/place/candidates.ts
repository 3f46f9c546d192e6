// The groups that a set of machines could form, one maker per strategy. Each returns only groups that
// fit; whether the worker can run them is decided elsewhere.
import type { CollectiveRegime } from '../cost/links.ts'
import { type ModelShape, dividesAmong } from '../model/shape.ts'
import type { StrategyName } from '../types.ts'
import { type Bench, type Group, bestLink, groupFits } from './group.ts'
import { stageOrders } from './orders.ts'
import { type DealtRanks, dealShares, dealtExperts, dealtHeads } from './shares.ts'
import { type SplitAim, type StageCosts, splitLayers } from './split.ts'
import { type StageTemplate, stageCosts } from './stage-costs.ts'
import { type World, formWorlds } from './world.ts'

export interface Candidate {
  readonly strategy: StrategyName
  readonly group: Group
  readonly machines: readonly number[]
  /** What its layers were cut for. */
  readonly aim: SplitAim
}

export const alone = (machine: number): StageTemplate => ({
  members: [{ machine, share: 1 }],
  sharing: 'alone',
  world: null,
})

function shared(
  world: World,
  sharing: 'tensor' | 'expert',
  shares: (machine: number) => number,
): StageTemplate {
  return {
    members: world.members.map((machine) => ({ machine, share: shares(machine) })),
    sharing,
    world,
  }
}

export interface CandidateMaker {
  readonly bench: Bench
  readonly shape: ModelShape
  readonly regime: CollectiveRegime
  readonly aims: readonly SplitAim[]
  readonly clusterSize: number
  readonly costs: Map<string, StageCosts>
  readonly splits: Map<string, number[] | null>
  readonly ranks: DealtRanks
  readonly worlds: Map<string, readonly World[]>
}

/** Stages that cost and hold the same have the same key. */
export function costKey(maker: CandidateMaker, template: StageTemplate): string {
  const ranks = template.members.map(
    ({ machine, share }) => `${maker.bench.cluster.machines[machine]?.signature ?? 0}*${share}`,
  )
  const meeting = template.world?.allReduce(maker.regime)
  return `${template.sharing}:${ranks.join(',')}:${meeting?.latencySeconds ?? 0}/${meeting?.secondsPerByte ?? 0}`
}

function wholeModel(maker: CandidateMaker, template: StageTemplate): Group | null {
  const group: Group = { stages: [{ from: 0, to: maker.bench.work.layers.length, ...template }] }
  return groupFits(maker.bench, group) ? group : null
}

export function candidate(
  strategy: StrategyName,
  group: Group | null,
  aim: SplitAim = 'sum',
): Candidate[] {
  if (group === null) return []
  return [
    {
      strategy,
      group,
      aim,
      machines: group.stages.flatMap((stage) => stage.members.map((member) => member.machine)),
    },
  ]
}

/** What layers cost on a stage, worked out once for stages that are alike. */
export function keptCosts(
  maker: CandidateMaker,
  template: StageTemplate,
  aim: SplitAim,
  rows: number,
): StageCosts {
  const key = `${aim};${rows};${costKey(maker, template)}`
  let known = maker.costs.get(key)
  if (known === undefined) {
    known = stageCosts(template, { bench: maker.bench, regime: maker.regime, aim, rows })
    maker.costs.set(key, known)
  }
  return known
}

/** Cuts the layers over stages in this order. */
function cut(
  maker: CandidateMaker,
  strategy: StrategyName,
  templates: readonly StageTemplate[],
): Candidate[] {
  const linked = templates.every((template, index) => {
    const previous = templates[index - 1]
    return (
      previous === undefined || bestLink(maker.bench, previous.members, template.members) !== null
    )
  })
  if (!linked) return []
  const keys = templates.map((template) => costKey(maker, template))
  const { concurrency, mergesRows, work } = maker.bench
  const rows = mergesRows ? Math.ceil(concurrency / Math.min(templates.length, concurrency)) : 1
  const found = new Map<string, Candidate>()
  for (const aim of maker.aims) {
    const splitKey = `${aim};${rows};${keys.join(';')}`
    let bounds = maker.splits.get(splitKey)
    if (bounds === undefined) {
      const costs = templates.map((template) => keptCosts(maker, template, aim, rows))
      bounds = splitLayers(costs, work.layers.length, aim === 'sum' ? 'sum' : 'most')
      const areAlike = keys.every((key) => key === keys[0])
      if (aim === 'sum' && areAlike && bounds !== null) bounds = evenIfAsGood(costs, bounds)
      maker.splits.set(splitKey, bounds)
    }
    if (bounds === null) return []
    const group: Group = {
      stages: templates.map((template, index) => ({
        ...template,
        from: bounds[index] ?? 0,
        to: bounds[index + 1] ?? 0,
      })),
    }
    for (const made of candidate(strategy, group, aim)) found.set(bounds.join(','), made)
  }
  return [...found.values()]
}

/** Sums this close are the same time, added up differently. */
export const asGood: number = 1 + 1e-12

/** Among equal machines every cut takes an answer the same time; an even one serves several answers better. */
function evenIfAsGood(costs: readonly StageCosts[], bounds: number[]): number[] {
  const even = splitLayers(costs, bounds.at(-1) ?? 0, 'most')
  const sum = (some: readonly number[]): number =>
    costs.reduce((total, stage, index) => {
      const [from = 0, to = 0] = [some[index], some[index + 1]]
      const own = (stage.costs[to] ?? 0) - (stage.costs[from] ?? 0)
      return total + own + (index === costs.length - 1 ? stage.last : 0)
    }, 0)
  return even !== null && sum(even) <= sum(bounds) * asGood ? even : bounds
}

export function singleCandidates(maker: CandidateMaker, machine: number): Candidate[] {
  return candidate('single', wholeModel(maker, alone(machine)))
}

export function pipelineCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  if (members.length > maker.bench.work.layers.length) return []
  return stageOrders(maker.bench, members, maker.clusterSize).flatMap((order) =>
    cut(maker, 'pipeline', order.map(alone)),
  )
}

function worldsOf(maker: CandidateMaker, members: readonly number[]): readonly World[] {
  const key = members.join(',')
  let worlds = maker.worlds.get(key)
  if (worlds === undefined) {
    const { bench, regime } = maker
    worlds = formWorlds(bench.cluster, members, { constants: bench.constants, regime })
    maker.worlds.set(key, worlds)
  }
  return worlds
}

/** Tensor worlds of these machines with equal shares, as stages. */
export function evenWorlds(maker: CandidateMaker, members: readonly number[]): StageTemplate[] {
  if (!dividesAmong(maker.shape, members.length).ok) return []
  return worldsOf(maker, members).map((world) => shared(world, 'tensor', () => 1 / members.length))
}

export function tensorCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  const even = evenWorlds(maker, members).flatMap((template) =>
    candidate('tensor', wholeModel(maker, template)),
  )
  const { bench, ranks } = maker
  const units = dealtHeads(maker.shape)
  const shares = dealShares({ bench, ranks, sharing: 'tensor', units }, members)
  if (shares === null) return even
  const first = shares.get(members[0] ?? 0)
  if (even.length > 0 && members.every((machine) => shares.get(machine) === first)) return even
  const uneven = worldsOf(maker, members).flatMap((world) =>
    candidate(
      'uneven-tensor',
      wholeModel(
        maker,
        shared(world, 'tensor', (machine) => shares.get(machine) ?? 0),
      ),
    ),
  )
  return [...even, ...uneven]
}

export function expertCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  const units = dealtExperts(maker.shape)
  if (units === 0) return []
  const { bench, ranks } = maker
  const shares = dealShares({ bench, ranks, sharing: 'expert', units }, members)
  if (shares === null) return []
  return worldsOf(maker, members).flatMap((world) =>
    candidate(
      'expert',
      wholeModel(
        maker,
        shared(world, 'expert', (machine) => shares.get(machine) ?? 0),
      ),
    ),
  )
}

/** Tensor worlds of `ways` machines in a row. Worlds are formed of neighbours in the given set. */
export function tensorPipelineCandidates(
  maker: CandidateMaker,
  members: readonly number[],
  ways: number,
): Candidate[] {
  if (members.length % ways !== 0 || members.length === ways) return []
  return partitions(maker, members, ways).flatMap((worlds) => {
    const templates: StageTemplate[] = []
    for (const part of worlds) {
      const template = evenWorlds(maker, part)[0]
      if (template === undefined) return []
      templates.push(template)
    }
    return cut(maker, 'tensor-pipeline', templates)
  })
}

/** Ways to form worlds: all of them for two pairs in a small cluster, else neighbours that are alike. */
function partitions(maker: CandidateMaker, members: readonly number[], ways: number): number[][][] {
  const [a, b, c, d] = members
  if (
    members.length === 4 &&
    ways === 2 &&
    maker.clusterSize <= 4 &&
    a !== undefined &&
    b !== undefined &&
    c !== undefined &&
    d !== undefined
  ) {
    const pairings = [
      [
        [a, b],
        [c, d],
      ],
      [
        [a, c],
        [b, d],
      ],
      [
        [a, d],
        [b, c],
      ],
    ]
    return pairings.flatMap((pairs) => [pairs, pairs.toReversed()])
  }
  const left = [...members]
  const worlds: number[][] = []
  while (left.length > 0) {
    const first = left.shift()
    if (first === undefined) break
    const peers = [...left]
      .sort((x, y) => closeness(maker.bench, first, y) - closeness(maker.bench, first, x))
      .slice(0, ways - 1)
    for (const peer of peers) left.splice(left.indexOf(peer), 1)
    worlds.push([first, ...peers])
  }
  return [worlds]
}

/** RDMA neighbours of the same kind make the best worlds. */
function closeness(bench: Bench, a: number, b: number): number {
  const link = bench.cluster.link(a, b)
  if (link === null) return -Infinity
  const speed = (index: number): number =>
    bench.cluster.machines[index]?.figures.memoryBytesPerSecond ?? 1
  const alike = Math.min(speed(a), speed(b)) / Math.max(speed(a), speed(b))
  return (link.class === 'rdma' ? 10 : link.bytesPerSecond / 1e10) + alike
}
