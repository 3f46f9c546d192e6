// What each layer would cost on a stage, for the splitter: time of a whole answer where one request
// counts, time of a step where many do, or the memory it takes.
import { stageTerms } from '../cost/decode.ts'
import type { CollectiveRegime } from '../cost/links.ts'
import { type PrefillStage, prefillChunkTokens, readTerms } from '../cost/prefill.ts'
import { totalSeconds } from '../cost/terms.ts'
import { type StageWork, noWork, stageWork } from '../model/sums.ts'
import type { RunTimes, StageSpans } from './chains.ts'
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
export const overlappedShare = 0.5

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
    layer: (index) => {
      const first = read.first(index, index + 1)
      const later = read.isOneChunk ? 0 : read.whole(index, index + 1) - first
      return first + overlappedShare * later + typicalAnswerTokens * step.layer(index)
    },
  }
}

type RunSeconds = (from: number, to: number) => number

/** The first chunk of the prompt, and all of it. */
function promptSeconds(
  template: StageTemplate,
  options: Pick<CostOptions, 'bench' | 'regime'>,
): { readonly first: RunSeconds; readonly whole: RunSeconds; readonly isOneChunk: boolean } {
  const { bench, regime } = options
  const ranks = ranksOf(bench, template)
  const allReduce = template.world?.allReduce(regime) ?? null
  const { promptTokens, constants } = bench
  const reading =
    (tokens: number): RunSeconds =>
    (from, to) => {
      const stage: PrefillStage = { from, to, ranks, sharing: template.sharing, allReduce }
      return totalSeconds(readTerms(bench.prefill, stage, { tokens, constants }))
    }
  return {
    first: reading(Math.min(promptTokens, prefillChunkTokens)),
    whole: reading(promptTokens),
    isOneChunk: promptTokens <= prefillChunkTokens,
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
  const { first, whole, isOneChunk } = promptSeconds(template, options)
  const write = writeSeconds(template, options)
  const own = oncePerRun(bench, (from, to) => first(from, to) + write(from, to))
  if (isOneChunk) return { reach, own: runTimes(own, reach, addsUp(own, count)), later: null }
  const all = oncePerRun(bench, whole)
  const later = oncePerRun(bench, (from, to) => all(from, to) - first(from, to))
  const plain = addsUp(own, count) && addsUp(all, count)
  return { reach, own: runTimes(own, reach, plain), later: runTimes(later, reach, plain) }
}

function addsUp(secondsOf: RunSeconds, count: number): boolean {
  let sum = 0
  for (let layer = 0; layer < count; layer++) sum += secondsOf(layer, layer + 1)
  const whole = secondsOf(0, count)
  return sum - whole <= asGood * whole
}

function runTimes(secondsOf: RunSeconds, reach: Int32Array, plain: boolean): RunTimes {
  const size = reach.length
  const sums = new Float64Array(size)
  for (let layer = 0; layer < size - 1; layer++)
    sums[layer + 1] = (sums[layer] ?? 0) + secondsOf(layer, layer + 1)
  if (plain) return { sums, spans: null }
  const spans = new Float64Array(size ** 2).fill(Infinity)
  for (let from = 0; from < size - 1; from++)
    for (let to = from + 1; to <= (reach[from] ?? from); to++)
      spans[from * size + to] = secondsOf(from, to)
  return { sums, spans }
}

/** Writing a typical answer with layers `from` to `to`. */
function writeSeconds(
  template: StageTemplate,
  options: Pick<CostOptions, 'bench' | 'regime'>,
): RunSeconds {
  const { bench, regime } = options
  const sums = bench.decode(1)
  const ranks = ranksOf(bench, template)
  const allReduce = template.world?.allReduce(regime) ?? null
  const { sharing } = template
  const activationBytes = bench.work.hidden * 2
  return (from, to) => {
    const work = stageWork(sums, from, to)
    const terms = stageTerms({ work, ranks, sharing, allReduce, activationBytes })
    return typicalAnswerTokens * totalSeconds(terms)
  }
}

/** Runs that hold the same are computed once. */
function oncePerRun(bench: Bench, compute: RunSeconds): RunSeconds {
  const runKey = runKeys(bench)
  const known = new Map<number, number>()
  return (from, to) => {
    const key = runKey(from, to)
    let seconds = known.get(key)
    if (seconds === undefined) {
      seconds = compute(from, to)
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
