// The planner's word on an automatic choice, kept with the wish: which machines, which split, why, and how fast
// it should be. The coordinator follows it while every machine it names can take part, so that all machines
// decide alike without knowing each other's chips.
import type { DeviceMatrix } from '../backends/device-matrix.ts'
import type { MachineId } from '../ids.ts'
import type { GroupPlan, Strategy } from './group-plan.ts'

export type Advice =
  | {
      readonly kind: 'planned'
      readonly strategy: Exclude<Strategy, 'auto'>
      readonly stages: readonly AdvisedStage[]
      readonly backend: 'ring' | 'jaccl'
      /** For JACCL, in the order of all ranks. */
      readonly devices?: DeviceMatrix
      /** One sentence: why it won. */
      readonly why: string
      readonly kbFindings: readonly number[]
      readonly predicted: Predicted
    }
  /** The planner could not tell, and why; then free memory decides. */
  | { readonly kind: 'unknown'; readonly why: string }

export interface AdvisedStage {
  readonly layers: number
  readonly machines: readonly MachineId[]
  readonly sharing: 'alone' | 'tensor' | 'expert'
}

export interface Predicted {
  readonly tokensPerSecond: PredictedRange
  readonly firstTokenSeconds: PredictedRange
  readonly restsOn: string
}

interface PredictedRange {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** Whether a group is what was advised: same machines, same layers, same sharing. */
export function follows(plan: GroupPlan, advice: Advice | undefined): boolean {
  if (advice?.kind !== 'planned') return false
  const shape = (stages: readonly (readonly [number, readonly string[]])[]): string =>
    stages.map(([layers, machines]) => `${layers}:${machines.join('+')}`).join('|')
  const planned = plan.stages.map(
    ({ layers: [from, to], ranks }) => [to - from, ranks.map((rank) => rank.machine)] as const,
  )
  const advised = advice.stages.map(({ layers, machines }) => [layers, machines] as const)
  return plan.strategy === advice.strategy && shape(planned) === shape(advised)
}

/** Why a group is as it is, in one sentence; null when a person fixed it. */
export function whyPlaced(
  plan: GroupPlan,
  wish: { readonly strategy: Strategy; readonly advice?: Advice },
): string | null {
  if (wish.strategy !== 'auto') return null
  if (follows(plan, wish.advice)) return wish.advice?.why ?? null
  const rule = 'by free memory: one machine that holds it, or the fewest that do'
  if (wish.advice === undefined) return `${rule}; the planner was not asked`
  return wish.advice.kind === 'unknown'
    ? `${rule}; the planner could not tell: ${wish.advice.why}`
    : `${rule}; what the planner chose has no room there, or a machine of it is not there`
}
