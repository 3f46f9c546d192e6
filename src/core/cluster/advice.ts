// The planner's word on an automatic choice: which machines, which split, why, and how fast it should be. It is
// asked before a model is loaded and again whenever a group must be placed and things have changed; a group keeps
// the reason it was placed for, so that nothing that runs is moved or explained anew because of later advice.
import type { DeviceMatrix } from '../backends/device-matrix.ts'
import type { DeploymentId, MachineId } from '../ids.ts'
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
      /** What it was asked about; other machines, another question. */
      readonly basis?: string
    }
  /** The planner could not tell, and why; then free memory decides. */
  | { readonly kind: 'unknown'; readonly why: string; readonly basis?: string }

/** What the planner is asked before a group is placed. */
export interface AdviceQuestion {
  readonly deployment: DeploymentId
  /** How many groups are still to come, this one included. */
  readonly groups: number
  /** Machines that serve it already, or on which it lately failed: others come first. */
  readonly avoid: readonly MachineId[]
  readonly basis: string
}

/** What was asked last about a deployment, and what came of it; null while it is awaited. */
export interface KnownAdvice {
  readonly basis: string
  readonly askedMs: number
  readonly advice: Advice | null
}

/** Why a group is where it is, as it was when it was placed. */
export interface PlacedReason {
  readonly why: string
  readonly kbFindings: readonly number[]
  /** Null when the planner did not choose it. */
  readonly predicted: Predicted | null
}

export interface AdvisedStage {
  readonly layers: number
  readonly machines: readonly MachineId[]
  readonly sharing: 'alone' | 'tensor' | 'expert'
}

/** What a person usually asks: first tokens are predicted for a prompt of this length. */
const promptTokensTypical = 1024

/** The same, in a context that may be shorter. */
export const promptTokensIn = (contextTokens: number): number =>
  Math.min(promptTokensTypical, contextTokens)

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

/** Why a group is placed so, in one sentence; null when a person fixed it. */
export function reasonFor(
  plan: GroupPlan,
  wish: { readonly strategy: Strategy; readonly advice?: Advice },
): PlacedReason | null {
  const { advice } = wish
  if (wish.strategy !== 'auto') return null
  if (advice?.kind === 'planned' && follows(plan, advice)) {
    const { why, kbFindings, predicted } = advice
    return { why: shortened(why), kbFindings, predicted }
  }
  const why = shortened(`${memoryRule}; ${whyNotFollowed(advice)}`)
  return { why, kbFindings: [], predicted: null }
}

/** It travels with every record. */
const shortened = (text: string): string =>
  text.length <= whyCharsMax ? text : `${text.slice(0, whyCharsMax - 1)}…`
const whyCharsMax = 500

const memoryRule = 'by free memory: one machine that holds it, or the fewest that do'

function whyNotFollowed(advice: Advice | undefined): string {
  if (advice === undefined) return 'the planner was not asked'
  return advice.kind === 'unknown'
    ? `the planner could not tell: ${advice.why}`
    : 'what the planner chose has no room there, or a machine of it is not there'
}

/** After a loss the rest stays where it is: what was predicted for other machines no longer counts. */
export function reasonAfterLoss(reason: PlacedReason): PlacedReason {
  if (reason.why.startsWith(aroundTheRest)) return reason
  const why = shortened(`${aroundTheRest}; before that ${reason.why}`)
  return { why, kbFindings: [], predicted: null }
}

const aroundTheRest = 'put together again around the machines that were left after a loss'
