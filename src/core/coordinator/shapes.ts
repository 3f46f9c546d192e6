// The shapes a deployment may take: how many stages, how many ranks in each. Whether a model can be cut that
// way at all is decided here, before any machine is looked at.
import { assertNever } from '../assert.ts'
import type { Deployment } from '../cluster/desired.ts'
import {
  type GroupPlan,
  type ModelCut,
  type StagePlan,
  type Strategy,
  machinesOf,
} from '../cluster/group-plan.ts'

export interface Shape {
  readonly strategy: Exclude<Strategy, 'auto'>
  /** Ranks of each stage. */
  readonly worlds: readonly number[]
  /** Layers of each stage; null: by the memory of the machines. */
  readonly layers: readonly number[] | null
  readonly worldStrategy: StagePlan['worldStrategy']
}

/** In order of preference, or why there is none. `machines` is how many could take part. */
export function shapesFor(deployment: Deployment, machines: number): readonly Shape[] | string {
  const refusal = whyNot(deployment)
  if (refusal !== null) return refusal
  const { strategy } = deployment
  switch (strategy) {
    case 'single':
      return [single(deployment)]
    case 'pipeline':
      return withStopgaps(deployment, machines, pipelines(deployment, machines))
    case 'tensor':
    case 'expert':
      return withStopgaps(deployment, machines, worlds(deployment, strategy, machines))
    case 'tensor-pipeline':
      return withStopgaps(deployment, machines, tensorPipelines(deployment, machines))
    case 'auto':
      return [single(deployment), ...automatic(deployment, machines)]
    default:
      return assertNever(strategy)
  }
}

/** With machines lost, an answer from another shape is better than none from the one that was asked for. */
function withStopgaps(
  deployment: Deployment,
  machines: number,
  wished: readonly Shape[] | string,
): readonly Shape[] | string {
  const lost = deployment.machines.length - machines
  if (lost <= 0) return wished
  const others = [...automatic(deployment, machines), single(deployment)]
  return typeof wished === 'string' ? others : [...wished, ...others]
}

/** Whether a group that was placed earlier is what is wished for now. */
export function isAsWished(plan: GroupPlan, deployment: Deployment): boolean {
  const { strategy, layers, machines, backend } = deployment
  const used = machinesOf(plan)
  const worlds = plan.stages.filter((stage) => stage.ranks.length > 1)
  return (
    plan.model.digest === deployment.model.digest &&
    plan.contextTokens === deployment.contextTokens &&
    (strategy === 'auto' || plan.strategy === strategy) &&
    (machines.length === 0 || used.every((machine) => machines.includes(machine))) &&
    (layers.length === 0 ||
      layers.join() === plan.stages.map(({ layers: [from, to] }) => to - from).join()) &&
    (backend === 'auto' || worlds.every((stage) => stage.backend === backend))
  )
}

function single({ model }: Deployment): Shape {
  return { strategy: 'single', worlds: [1], layers: [model.layers], worldStrategy: 'none' }
}

function automatic(deployment: Deployment, machines: number): readonly Shape[] {
  if (deployment.model.cut?.pipeline !== true) return []
  const found = pipelines({ ...deployment, machines: [], layers: [] }, machines)
  return typeof found === 'string' ? [] : found
}

function pipelines(deployment: Deployment, machines: number): readonly Shape[] | string {
  const { model, layers } = deployment
  const pipeline = (stages: number, counts: readonly number[] | null): Shape => ({
    strategy: 'pipeline',
    worlds: Array.from({ length: stages }, () => 1),
    layers: counts,
    worldStrategy: 'none',
  })
  if (layers.length > 0) return [pipeline(layers.length, layers)]
  const asked = deployment.machines.length
  if (asked > model.layers)
    return `${asked} machines are more than the ${model.layers} layers of ${model.name}`
  if (asked > 1) return [pipeline(asked, null)]
  if (machines < 2) return 'a pipeline needs two machines or more, and one can take part'
  const most = Math.min(machines, model.layers)
  // Each further machine costs a hop, so the fewest that hold it come first.
  return Array.from({ length: most - 1 }, (_, index) => pipeline(index + 2, null))
}

function worlds(
  deployment: Deployment,
  strategy: 'tensor' | 'expert',
  machines: number,
): readonly Shape[] | string {
  const { model } = deployment
  const asked = deployment.machines.length
  const sizes = possibleSizes(model.cut, strategy)
  const shape = (size: number): Shape => ({
    strategy,
    worlds: [size],
    layers: [model.layers],
    worldStrategy: strategy,
  })
  if (asked > 0) {
    const reason = whyNotSize(deployment, { strategy, size: asked })
    return reason ?? [shape(asked)]
  }
  if (machines < 2)
    return `${strategy} parallelism needs two machines or more, and one can take part`
  const fitting = sizes.filter((size) => size >= 2 && size <= machines)
  if (fitting.length === 0)
    return `${machines} machines cannot share ${model.name}: ${describeSizes(model.cut, strategy)}`
  // Wider is faster, as far as the heads allow.
  return fitting.toReversed().map(shape)
}

function tensorPipelines(deployment: Deployment, machines: number): readonly Shape[] | string {
  const { model, layers } = deployment
  const ranks = deployment.machines.length > 0 ? deployment.machines.length : machines
  const stages = layers.length > 0 ? layers.length : 2
  if (ranks < 3)
    return `a tensor world in a pipeline needs three machines or more, and ${ranks} can take part`
  if (ranks <= stages)
    return `${ranks} machines in ${stages} stages leave no stage that is a world; fewer stages would`
  const worldSizes = Array.from(
    { length: stages },
    (_, stage) => Math.floor(ranks / stages) + (stage < ranks % stages ? 1 : 0),
  )
  for (const size of worldSizes) {
    const reason = whyNotSize(deployment, { strategy: 'tensor', size })
    if (reason !== null) return reason
  }
  const counts = layers.length > 0 ? layers : layersByRanks(model.layers, worldSizes)
  return [
    { strategy: 'tensor-pipeline', worlds: worldSizes, layers: counts, worldStrategy: 'tensor' },
  ]
}

/** A stage of two machines takes twice the layers of a stage of one. */
function layersByRanks(total: number, sizes: readonly number[]): readonly number[] {
  const ranks = sizes.reduce((sum, size) => sum + size, 0)
  return apportion(
    total,
    sizes.map((size) => size / ranks),
  )
}

/** Whole numbers that add up to the total, each at least one, as near to the weights as can be. */
export function apportion(total: number, weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((all, weight) => all + weight, 0)
  const exact = weights.map((weight) => (sum > 0 ? (weight / sum) * total : total / weights.length))
  const counts = exact.map((value) => Math.max(1, Math.floor(value)))
  const missing = (): number => total - counts.reduce((all, count) => all + count, 0)
  const gap = (index: number): number => (exact[index] ?? 0) - (counts[index] ?? 0)
  while (missing() !== 0) {
    const step = Math.sign(missing())
    let best = -1
    for (let index = 0; index < counts.length; index++) {
      if (step < 0 && (counts[index] ?? 0) <= 1) continue
      if (best === -1 || step * gap(index) > step * gap(best)) best = index
    }
    if (best === -1) return counts
    counts[best] = (counts[best] ?? 0) + step
  }
  return counts
}

/** Whether the model can be cut as a plan from elsewhere says; each stage that is a world must divide its heads. */
export function whyNotShape(deployment: Deployment, shape: Shape): string | null {
  const { strategy, worldStrategy } = shape
  const refusal = whyNot({ ...deployment, strategy, layers: [] })
  if (refusal !== null || worldStrategy === 'none') return refusal
  for (const size of shape.worlds) {
    const reason = whyNotSize(deployment, { strategy: worldStrategy, size })
    if (reason !== null) return reason
  }
  return null
}

/** Why the wish itself cannot be met, whatever the machines. */
function whyNot(deployment: Deployment): string | null {
  const { model, strategy, layers } = deployment
  const { cut } = model
  if (layers.length > 0 && strategy !== 'pipeline' && strategy !== 'tensor-pipeline')
    return `layers can be given for a pipeline only, not for "${strategy}"`
  if (layers.length > model.layers)
    return `${layers.length} stages are more than the ${model.layers} layers of ${model.name}`
  const sum = layers.reduce((all, count) => all + count, 0)
  if (layers.length > 0 && sum !== model.layers)
    return `the layers ${layers.join(', ')} add up to ${sum}, and ${model.name} has ${model.layers}`
  if (strategy === 'pipeline' || strategy === 'tensor-pipeline') {
    const { machines } = deployment
    if (strategy === 'pipeline' && layers.length > 0 && machines.length > 0)
      if (machines.length < layers.length)
        return `${layers.length} stages need ${layers.length} machines, and ${machines.length} are named`
    if (cut?.pipeline !== true)
      return `${model.name} cannot be cut into stages: ${model.architecture} models are not cut`
  }
  if ((strategy === 'tensor' || strategy === 'tensor-pipeline') && (cut?.tensor ?? 'no') === 'no')
    return `${model.name} cannot be split by heads: mlx-lm has no split for ${model.architecture} models; "--strategy pipeline" works`
  if (strategy === 'expert' && cut?.expert !== true)
    return `${model.name} has no experts to share out; "--strategy pipeline" or "tensor" works`
  return null
}

/** World sizes that the model allows, two and more. */
function possibleSizes(
  cut: ModelCut | undefined,
  strategy: 'tensor' | 'expert',
): readonly number[] {
  if (cut === undefined) return []
  const limit = strategy === 'expert' ? cut.experts : cut.kvHeads
  const sizes: number[] = []
  for (let size = 2; size <= limit; size++) if (isPossible(cut, strategy, size)) sizes.push(size)
  return sizes
}

function isPossible(cut: ModelCut, strategy: 'tensor' | 'expert', size: number): boolean {
  if (strategy === 'expert') return size <= cut.experts
  if (cut.tensor === 'uneven') return size <= cut.kvHeads
  return cut.heads % size === 0 && cut.kvHeads % size === 0
}

function describeSizes(cut: ModelCut | undefined, strategy: 'tensor' | 'expert'): string {
  const sizes = possibleSizes(cut, strategy)
  const what =
    strategy === 'expert'
      ? `its ${cut?.experts ?? 0} experts`
      : `its ${cut?.heads ?? 0} heads and ${cut?.kvHeads ?? 0} key-value heads`
  if (sizes.length === 0) return `${what} cannot be shared out`
  return `${what} can be shared by ${sizes.join(', ')}`
}

function whyNotSize(
  { model }: Deployment,
  { strategy, size }: { strategy: 'tensor' | 'expert'; size: number },
): string | null {
  const { cut } = model
  if (size === 1) return null
  if (cut !== undefined && isPossible(cut, strategy, size)) return null
  return `${size} machines cannot share ${model.name}: ${describeSizes(cut, strategy)}`
}
