// How one group runs: which ranks hold which layers, where. A plan is fixed for the life of its group.
import { assert } from '../assert.ts'
import type { DeploymentId, GroupId, MachineId, ModelDigest } from '../ids.ts'
import type { DeviceMatrix } from '../backends/device-matrix.ts'
import type { PlacedReason } from './advice.ts'
import { type JsonValue, canonicalJson } from '../json.ts'

export const strategies = [
  'auto',
  'single',
  'pipeline',
  'tensor',
  'expert',
  'tensor-pipeline',
] as const
export type Strategy = (typeof strategies)[number]

export interface ModelRef {
  readonly name: string
  readonly digest: ModelDigest
  readonly architecture: string
  readonly layers: number
  /** As stored; a machine that computes in float32 needs four bytes for each parameter instead. */
  readonly weightsBytes: number
  readonly parameters: number
  readonly kvBytesPerToken: number
  readonly contextTokens: number
  /** What the model's makers recommend when the client says nothing. */
  readonly defaults: SamplingDefaults
  /** It turns text into vectors and answers nothing. */
  readonly embeds?: boolean
  /** Its template knows reasoning. */
  readonly reasons?: boolean
  /** How it can be shared out; absent: only whole. */
  readonly cut?: ModelCut
}

export interface ModelCut {
  readonly pipeline: boolean
  /** "even" when the heads must divide; "uneven" when any split of them will do. */
  readonly tensor: 'no' | 'even' | 'uneven'
  readonly expert: boolean
  readonly heads: number
  readonly kvHeads: number
  readonly experts: number
  /** Part of the parameters that is in no layer: embedding and head. */
  readonly edgeFraction: number
  /** Embedding and head are one matrix, which both ends of a pipeline then hold. */
  readonly tied: boolean
}

/** For models without real heads (scripts, simulations): any split will do. */
export const freelyCut: ModelCut = {
  pipeline: true,
  tensor: 'uneven',
  expert: false,
  heads: 8,
  kvHeads: 8,
  experts: 0,
  edgeFraction: 0,
  tied: false,
}

export interface SamplingDefaults {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly repetitionPenalty?: number
}

export interface RankPlan {
  readonly machine: MachineId
  /** Everything the rank may use: weights, caches, activations. Reserved before it starts. */
  readonly memoryBytes: number
  /** Its part of the stage among the ranks of the world; 1 when alone. */
  readonly share: number
}

export interface StagePlan {
  /** First layer and the first one no longer held. */
  readonly layers: readonly [number, number]
  readonly ranks: readonly RankPlan[]
  readonly backend: 'none' | 'ring' | 'jaccl' | 'nccl'
  readonly worldStrategy: 'none' | 'tensor' | 'expert'
  /** For JACCL: which RDMA device of each rank leads to which other. */
  readonly devices?: DeviceMatrix
  /** For JACCL: the address of its first rank that all others reach, where they first meet. */
  readonly meeting?: string
  /** Why it got this backend and not a better one. */
  readonly why?: string
}

export interface GroupPlan {
  readonly group: GroupId
  /** Counts how often the group was re-formed around the ranks that survived a loss. */
  readonly formation: number
  readonly deployment: DeploymentId
  readonly model: ModelRef
  readonly strategy: Exclude<Strategy, 'auto'>
  readonly contextTokens: number
  readonly stages: readonly StagePlan[]
  /** Why it was placed so; absent when a person fixed it. */
  readonly reason?: PlacedReason
}

/** One rank of a plan with its place: ranks are numbered through all stages, head first. */
export interface PlacedRank extends RankPlan {
  readonly rank: number
  readonly stage: number
  readonly worldRank: number
}

export function placedRanks(plan: GroupPlan): readonly PlacedRank[] {
  const placed: PlacedRank[] = []
  for (const [stage, { ranks }] of plan.stages.entries()) {
    for (const [worldRank, rank] of ranks.entries()) {
      placed.push({ ...rank, rank: placed.length, stage, worldRank })
    }
  }
  return placed
}

export function machinesOf(plan: GroupPlan): readonly MachineId[] {
  return [...new Set(placedRanks(plan).map((rank) => rank.machine))]
}

/** The head embeds tokens and schedules; requests for the group go to its machine. */
export function headMachine(plan: GroupPlan): MachineId {
  const head = plan.stages[0]?.ranks[0]
  assert(head !== undefined, `plan of group ${plan.group} has a first rank`)
  return head.machine
}

/** What all ranks compare before the first step. Short, and equal only for equal plans. */
export function planHash(plan: GroupPlan): string {
  const text = canonicalJson(plan as unknown as JsonValue)
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (let index = 0; index < text.length; index++) {
    low = Math.imul(low ^ text.charCodeAt(index), 0x01000193)
    high = Math.imul(high ^ text.charCodeAt(index), 0x85ebca6b)
    high = (high << 13) | (high >>> 19)
  }
  return `${(low >>> 0).toString(16).padStart(8, '0')}${(high >>> 0).toString(16).padStart(8, '0')}`
}
