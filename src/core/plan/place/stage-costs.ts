// What each layer would cost on a stage, for the splitter: time of a whole answer where one request
// counts, time of a step where many do, or the memory it takes.
import { stageTerms } from '../cost/decode.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { type PrefillStage, chunkTerms, prefillChunkTokens } from '../cost/prefill.ts'
import { totalSeconds } from '../cost/terms.ts'
import { type StageWork, noWork, stageWork } from '../model/sums.ts'
import type { StageSpans } from './chains.ts'
import { type Bench, type GroupStage, typicalAnswerTokens } from './group.ts'
import { rankMemoryBytes } from './memory.ts'
import { type SplitAim, type StageCosts, reachOf } from './split.ts'

export type StageTemplate = Omit<GroupStage, 'from' | 'to'>

export interface CostOptions {
  readonly bench: Bench
  readonly regime: CollectiveRegime
  readonly aim: SplitAim
  /** Rows in one step when the slowest stage is to be as quick as possible. */
  readonly rows: number
}

/** Later chunks of a long prompt overlap between stages: about half of their time shows. */
const overlappedShare = 0.5

export function stageCosts(template: StageTemplate, options: CostOptions): StageCosts {
  const { bench, aim } = options
  const layers = bench.work.layers.length
  const perLayer =
    aim === 'room'
      ? null
      : aim === 'slowest'
        ? stepSeconds(template, options)
        : answerSeconds(template, options)
  const costs = new Float64Array(layers + 1)
  // Layers of one kind cost the same: the work object is shared between them.
  const perKind = new Map<unknown, number>()
  for (let layer = 0; layer < layers; layer++) {
    if (perLayer === null) {
      costs[layer + 1] = roomTaken(bench, template, layer + 1)
      continue
    }
    const kind = bench.work.layers[layer]
    let own = perKind.get(kind)
    if (own === undefined) {
      own = perLayer.layer(layer)
      perKind.set(kind, own)
    }
    costs[layer + 1] = (costs[layer] ?? 0) + own
  }
  return {
    costs,
    last: perLayer === null ? bench.work.headBytes / leastMemory(bench, template) : perLayer.head,
    reach: reachOf(layers, (from, to) => fits(bench, template, from, to)),
  }
}

function fits(bench: Bench, template: StageTemplate, from: number, to: number): boolean {
  const { sharing } = template
  for (const { machine, share } of template.members)
    if (
      rankMemoryBytes(bench.memory, { from, to, share, sharing }) >
      (bench.cluster.machines[machine]?.machine.memoryFreeBytes ?? 0)
    )
      return false
  return true
}

interface LayerSeconds {
  readonly layer: (index: number) => number
  readonly head: number
}

function stepSeconds(template: StageTemplate, options: CostOptions): LayerSeconds {
  const { bench, regime, rows } = options
  const sums = bench.decode(rows)
  const ranks = ranksOf(bench, template)
  const seconds = (work: StageWork): number =>
    totalSeconds(
      stageTerms({
        work,
        ranks,
        sharing: template.sharing,
        allReduce: template.world?.allReduce(regime) ?? null,
        activationBytes: rows * bench.work.hidden * 2,
      }),
    )
  return {
    layer: (index) =>
      seconds(
        withoutHead(stageWork(sums, index, index + 1), sums.head, index + 1 === sums.layerCount),
      ),
    head: seconds({ ...noWork, ...sums.head }),
  }
}

/** Reading the prompt and writing an answer, for one request. */
function answerSeconds(template: StageTemplate, options: CostOptions): LayerSeconds {
  const step = stepSeconds(template, { ...options, rows: 1 })
  const read = promptSeconds(template, options)
  return {
    head: typicalAnswerTokens * step.head,
    layer: (index) => read(index, index + 1) + typicalAnswerTokens * step.layer(index),
  }
}

function promptSeconds(
  template: StageTemplate,
  options: Pick<CostOptions, 'bench' | 'regime'>,
): (from: number, to: number) => number {
  const { bench, regime } = options
  const ranks = ranksOf(bench, template)
  const allReduce = template.world?.allReduce(regime) ?? null
  const { promptTokens, constants } = bench
  return (from, to) => {
    const stage: PrefillStage = { from, to, ranks, sharing: template.sharing, allReduce }
    let seconds = 0
    for (let before = 0; before < promptTokens; before += prefillChunkTokens) {
      const tokens = Math.min(prefillChunkTokens, promptTokens - before)
      const chunk = totalSeconds(chunkTerms(bench.prefill, stage, { tokens, before, constants }))
      seconds += before === 0 ? chunk : overlappedShare * chunk
    }
    return seconds
  }
}

/** Seconds this close are the same, added up differently. */
const asGood = 1e-12

/**
 * Seconds of an answer for every run of layers, exactly as a group is costed. A run never takes longer
 * than its layers one by one, and loses most against them as a whole: where the whole loses nothing,
 * no run does, and layers add up. They do not where unlike ranks wait for each other.
 */
export function stageSpans(
  template: StageTemplate,
  options: Pick<CostOptions, 'bench' | 'regime'>,
): StageSpans {
  const { bench } = options
  const count = bench.work.layers.length
  const reach = reachOf(count, (from, to) => fits(bench, template, from, to))
  const secondsOf = runSeconds(template, options)
  const sums = new Float64Array(count + 1)
  for (let layer = 0; layer < count; layer++)
    sums[layer + 1] = (sums[layer] ?? 0) + secondsOf(layer, layer + 1)
  const whole = secondsOf(0, count)
  if ((sums[count] ?? 0) - whole <= asGood * whole) return { reach, sums, spans: null }
  const spans = new Float64Array((count + 1) ** 2).fill(Infinity)
  for (let from = 0; from < count; from++)
    for (let to = from + 1; to <= (reach[from] ?? from); to++)
      spans[from * (count + 1) + to] = secondsOf(from, to)
  return { reach, sums, spans }
}

/** Seconds of an answer for layers `from` to `to`, computed once for runs that hold the same. */
function runSeconds(
  template: StageTemplate,
  options: Pick<CostOptions, 'bench' | 'regime'>,
): (from: number, to: number) => number {
  const { bench, regime } = options
  const read = promptSeconds(template, options)
  const sums = bench.decode(1)
  const ranks = ranksOf(bench, template)
  const allReduce = template.world?.allReduce(regime) ?? null
  const { sharing } = template
  const activationBytes = bench.work.hidden * 2
  const runKey = runKeys(bench)
  const known = new Map<number, number>()
  return (from, to) => {
    const key = runKey(from, to)
    let seconds = known.get(key)
    if (seconds === undefined) {
      const work = stageWork(sums, from, to)
      const step = totalSeconds(stageTerms({ work, ranks, sharing, allReduce, activationBytes }))
      seconds = read(from, to) + typicalAnswerTokens * step
      known.set(key, seconds)
    }
    return seconds
  }
}

/** As many kinds of layer as one number can count exactly. */
const countedKindsMax = 6

/** A number for what a run of layers holds: equal numbers, equal cost. */
function runKeys(bench: Bench): (from: number, to: number) => number {
  const { kinds } = bench.prefill
  const count = bench.work.layers.length
  const size = count + 1
  if (kinds.length > countedKindsMax || size > 400) return (from, to) => from * size + to
  return (from, to) => {
    let key = to === count ? 1 : 0
    for (const kind of kinds) key = key * size + (kind.counts[to] ?? 0) - (kind.counts[from] ?? 0)
    return key
  }
}

function ranksOf(bench: Bench, template: StageTemplate) {
  return template.members.flatMap((member) => {
    const machine = bench.cluster.machines[member.machine]
    return machine === undefined ? [] : [{ figures: machine.figures, share: member.share }]
  })
}

function withoutHead(work: StageWork, head: StageWork, isLast: boolean): StageWork {
  if (!isLast) return work
  return {
    ...work,
    sharedBytes: work.sharedBytes - head.sharedBytes,
    replicatedBytes: work.replicatedBytes - head.replicatedBytes,
    flops: work.flops - head.flops,
    kernels: work.kernels - head.kernels,
  }
}

function leastMemory(bench: Bench, template: StageTemplate): number {
  return Math.min(
    ...template.members.map(
      (member) => bench.cluster.machines[member.machine]?.machine.memoryFreeBytes ?? 1,
    ),
  )
}

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
