// The groups that a set of machines could form, one maker per strategy. Each returns only groups that
// fit; whether the worker can run them is decided elsewhere.
import { stageTerms } from '../cost/decode.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { totalSeconds } from '../cost/terms.ts'
import { type ModelShape, dividesAmong } from '../model/shape.ts'
import { noWork, stageWork } from '../model/sums.ts'
import type { StrategyName } from '../types.ts'
import { type Bench, type Group, type GroupStage, groupFits } from './group.ts'
import { rankMemoryBytes } from './memory.ts'
import { stageOrders } from './orders.ts'
import { type SplitAim, type StageCosts, reachOf, splitLayers } from './split.ts'
import { type World, formWorld } from './world.ts'

export interface Candidate {
  readonly strategy: StrategyName
  readonly group: Group
  readonly machines: readonly number[]
  /** What its layers were cut for. */
  readonly aim: SplitAim
}

type StageTemplate = Omit<GroupStage, 'from' | 'to'>

const alone = (machine: number): StageTemplate => ({
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

/** Seconds and fit of a stage, layer by layer, for the splitter. Kept per template in `cache`. */
function stageCosts(
  bench: Bench,
  template: StageTemplate,
  regime: CollectiveRegime,
  needsRoom: boolean,
): StageCosts {
  const layers = bench.work.layers.length
  const sums = bench.decode(1)
  const ranks = template.members.flatMap((member) => {
    const machine = bench.cluster.machines[member.machine]
    return machine === undefined ? [] : [{ figures: machine.figures, share: member.share }]
  })
  const run = {
    ranks,
    sharing: template.sharing,
    allReduce: template.world?.allReduce(regime) ?? null,
    activationBytes: bench.work.hidden * 2,
  }
  const seconds = new Float64Array(layers + 1)
  // Layers of one kind take the same time: the work object is shared between them.
  const perKind = new Map<unknown, number>()
  for (let layer = 0; layer < layers; layer++) {
    const kind = bench.work.layers[layer]
    let own = perKind.get(kind)
    if (own === undefined) {
      const work = stageWork(sums, layer, layer + 1)
      const bare = layer + 1 === layers ? subtractHead(work, sums.head) : work
      own = totalSeconds(stageTerms({ ...run, work: bare }))
      perKind.set(kind, own)
    }
    seconds[layer + 1] = (seconds[layer] ?? 0) + own
  }
  const room = new Float64Array(layers + 1)
  if (needsRoom) for (let to = 1; to <= layers; to++) room[to] = roomTaken(bench, template, to)
  return {
    seconds,
    room,
    lastRoom: bench.work.headBytes / leastMemory(bench, template),
    lastSeconds: totalSeconds(stageTerms({ ...run, work: { ...noWork, ...sums.head } })),
    reach: reachOf(layers, (from, to) =>
      template.members.every(
        (member) =>
          rankMemoryBytes(bench.memory, {
            from,
            to,
            share: member.share,
            sharing: template.sharing,
          }) <= (bench.cluster.machines[member.machine]?.machine.memoryFreeBytes ?? 0),
      ),
    ),
  }
}

const leastMemory = (bench: Bench, template: StageTemplate): number =>
  Math.min(
    ...template.members.map(
      (member) => bench.cluster.machines[member.machine]?.machine.memoryFreeBytes ?? 1,
    ),
  )

/** The part of the smallest member's memory that the first `to` layers would take, ends left out. */
function roomTaken(bench: Bench, template: StageTemplate, to: number): number {
  const member = template.members[0]
  if (member === undefined) return 0
  const { cut, experts, whole, cacheCut, cacheWhole } = bench.memory
  const share = template.sharing === 'tensor' ? member.share : 1
  const bytes =
    ((cut[to] ?? 0) + (cacheCut[to] ?? 0)) * share +
    (experts[to] ?? 0) * (template.sharing === 'alone' ? 1 : member.share) +
    (whole[to] ?? 0) +
    (cacheWhole[to] ?? 0)
  return bytes / leastMemory(bench, template)
}

function subtractHead(
  work: ReturnType<typeof stageWork>,
  head: ReturnType<typeof stageWork>,
): ReturnType<typeof stageWork> {
  return {
    ...work,
    sharedBytes: work.sharedBytes - head.sharedBytes,
    replicatedBytes: work.replicatedBytes - head.replicatedBytes,
    flops: work.flops - head.flops,
    kernels: work.kernels - head.kernels,
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
}

/** Stages that cost and hold the same have the same key. */
function costKey(maker: CandidateMaker, template: StageTemplate): string {
  return template.world === null
    ? `alone:${template.members.map((member) => maker.bench.cluster.machines[member.machine]?.signature ?? 0).join(',')}`
    : `${template.sharing}:${template.members.map((member) => `${member.machine}*${member.share}`).join(',')}`
}

function costsOf(maker: CandidateMaker, template: StageTemplate, key: string): StageCosts {
  let costs = maker.costs.get(key)
  if (costs === undefined) {
    costs = stageCosts(maker.bench, template, maker.regime, maker.aims.includes('room'))
    maker.costs.set(key, costs)
  }
  return costs
}

function wholeModel(maker: CandidateMaker, template: StageTemplate): Group | null {
  const group: Group = { stages: [{ from: 0, to: maker.bench.work.layers.length, ...template }] }
  return groupFits(maker.bench, group) ? group : null
}

function candidate(
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

/** Cuts the layers over stages in this order. */
function cut(
  maker: CandidateMaker,
  strategy: StrategyName,
  templates: readonly StageTemplate[],
): Candidate[] {
  const linked = templates.every((template, index) => {
    const previous = templates[index - 1]
    if (previous === undefined) return true
    return (
      maker.bench.cluster.link(
        previous.members[0]?.machine ?? 0,
        template.members[0]?.machine ?? 0,
      ) !== null
    )
  })
  if (!linked) return []
  const keys = templates.map((template) => costKey(maker, template))
  const found = new Map<string, Candidate>()
  for (const aim of maker.aims) {
    const splitKey = `${aim};${keys.join(';')}`
    let bounds = maker.splits.get(splitKey)
    if (bounds === undefined) {
      const costs = templates.map((template, index) => costsOf(maker, template, keys[index] ?? ''))
      bounds = splitLayers(costs, maker.bench.work.layers.length, aim)
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

export function singleCandidates(maker: CandidateMaker, machine: number): Candidate[] {
  return candidate('single', wholeModel(maker, alone(machine)))
}

export function pipelineCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  if (members.length > maker.bench.work.layers.length) return []
  return stageOrders(maker.bench, members, maker.clusterSize).flatMap((order) =>
    cut(maker, 'pipeline', order.map(alone)),
  )
}

export function tensorCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  const world = formWorld(maker.bench.cluster, members, maker.bench.constants)
  if (world === null) return []
  const even = dividesAmong(maker.shape, members.length).ok
    ? candidate(
        'tensor',
        wholeModel(
          maker,
          shared(world, 'tensor', () => 1 / members.length),
        ),
      )
    : []
  const shares = unevenShares(maker, members)
  const uneven =
    shares === null
      ? []
      : candidate(
          'uneven-tensor',
          wholeModel(
            maker,
            shared(world, 'tensor', (machine) => shares.get(machine) ?? 0),
          ),
        )
  return [...even, ...uneven]
}

/** Whole KV heads to each machine, in proportion to its memory bandwidth; null when that is even. */
function unevenShares(
  maker: CandidateMaker,
  members: readonly number[],
): Map<number, number> | null {
  const heads = Math.min(
    ...maker.shape.kinds.map((kind) =>
      kind.attention.kind === 'grouped'
        ? kind.attention.kvHeads
        : kind.attention.kind === 'latent'
          ? kind.attention.queryHeads
          : kind.attention.heads,
    ),
  )
  if (heads < members.length) return null
  const speeds = members.map(
    (index) => maker.bench.cluster.machines[index]?.figures.memoryBytesPerSecond ?? 0,
  )
  const total = speeds.reduce((sum, speed) => sum + speed, 0)
  const counts = speeds.map((speed) => Math.max(1, Math.round((heads * speed) / total)))
  let excess = counts.reduce((sum, count) => sum + count, 0) - heads
  while (excess !== 0) {
    // Take from, or give to, whoever is furthest above or below a fair time per head.
    const load = counts.map((count, index) => count / (speeds[index] ?? 1))
    const pick =
      excess > 0
        ? indexOfMost(load, (index) => (counts[index] ?? 0) > 1)
        : indexOfMost(
            load.map((value) => -value),
            () => true,
          )
    if (pick < 0) return null
    counts[pick] = (counts[pick] ?? 0) - Math.sign(excess)
    excess -= Math.sign(excess)
  }
  if (counts.every((count) => count === counts[0])) return null
  return new Map(members.map((machine, index) => [machine, (counts[index] ?? 0) / heads] as const))
}

function indexOfMost(values: readonly number[], allowed: (index: number) => boolean): number {
  let best = -1
  for (const [index, value] of values.entries())
    if (allowed(index) && (best < 0 || value > (values[best] ?? -Infinity))) best = index
  return best
}

export function expertCandidates(maker: CandidateMaker, members: readonly number[]): Candidate[] {
  if (maker.shape.kinds.every((kind) => kind.experts === null)) return []
  const world = formWorld(maker.bench.cluster, members, maker.bench.constants)
  if (world === null) return []
  const memory = (index: number): number =>
    maker.bench.cluster.machines[index]?.machine.memoryFreeBytes ?? 0
  const total = members.reduce((sum, index) => sum + memory(index), 0)
  const equal = wholeModel(
    maker,
    shared(world, 'expert', () => 1 / members.length),
  )
  if (equal !== null) return candidate('expert', equal)
  return candidate(
    'expert',
    wholeModel(
      maker,
      shared(world, 'expert', (machine) => memory(machine) / total),
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
  if (!dividesAmong(maker.shape, ways).ok) return []
  const left = [...members]
  const templates: StageTemplate[] = []
  while (left.length > 0) {
    const first = left.shift()
    if (first === undefined) break
    const peers = [...left]
      .sort((a, b) => closeness(maker.bench, first, b) - closeness(maker.bench, first, a))
      .slice(0, ways - 1)
    for (const peer of peers) left.splice(left.indexOf(peer), 1)
    const world = formWorld(maker.bench.cluster, [first, ...peers], maker.bench.constants)
    if (world === null) return []
    templates.push(shared(world, 'tensor', () => 1 / ways))
  }
  return cut(maker, 'tensor-pipeline', templates)
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
