// What the planner is told and what it answers: plain data, so that a coordinator, a command line and
// a test can all ask the same question.
import type { MachineId } from '../ids.ts'
import type { ChipFigures, MachineMeasurement } from './cost/figures.ts'
import type { CollectiveRegime, LinkFigures, WorldMeasurement } from './cost/links.ts'
import type { Terms } from './cost/terms.ts'
import type { Architecture } from './model/architecture.ts'
import type { ModelShape } from './model/shape.ts'
import type { WeightFormat } from './model/work.ts'

export interface PlanMachine {
  readonly id: MachineId
  readonly name: string
  /** Null when the chip is unknown; then it must have been measured. */
  readonly chip: ChipFigures | null
  readonly measurement: MachineMeasurement
  /** What ranks may take now: what it lends, less what already runs on it. */
  readonly memoryFreeBytes: number
  readonly role: 'always-on' | 'sometimes' | 'client'
  readonly onBattery: boolean
  /** A JACCL world already runs here; a Mac holds one at a time. */
  readonly inJacclWorld: boolean
  /** What already runs here; its memory is not in `memoryFreeBytes`. */
  readonly running: readonly { readonly name: string; readonly memoryBytes: number }[]
  readonly diskBytesPerSecond: number | null
}

export interface PlanLink {
  readonly source: MachineId
  readonly target: MachineId
  readonly figures: LinkFigures
}

export interface MeasuredWorld {
  readonly machines: readonly MachineId[]
  readonly backend: 'ring' | 'jaccl'
  readonly measurement: WorldMeasurement
}

export interface PlanModel {
  readonly id: string
  readonly name: string
  readonly shape: ModelShape
  readonly architecture: Architecture
  readonly format: WeightFormat
  /** Other ways the same model is stored, for what to say when this one does not fit. */
  readonly otherFormats: readonly WeightFormat[]
}

/** What the worker can run today. The architecture has its own word on top. */
export interface WorkerAbilities {
  readonly pipeline: boolean
  readonly tensor: boolean
  readonly unevenTensor: boolean
  readonly tensorPipeline: boolean
  readonly expert: boolean
  readonly replicas: boolean
}

export type PlanGoal = 'fastest' | 'throughput' | 'context' | 'power' | 'survive'

export interface PlanPolicy {
  readonly goal: PlanGoal
  readonly pin: readonly MachineId[]
  readonly avoid: readonly MachineId[]
  readonly keepFree: readonly MachineId[]
}

export interface PlanPrices {
  readonly currency: string
  readonly perKilowattHour: number
  /** What a machine cost and how long it is to serve; null leaves the purchase out. */
  readonly machinePrice: ((machine: PlanMachine) => number | null) | null
  readonly yearsOfUse: number
}

export interface PlanRequest {
  readonly machines: readonly PlanMachine[]
  readonly links: readonly PlanLink[]
  readonly worlds: readonly MeasuredWorld[]
  readonly model: PlanModel
  readonly contextTokens: number
  readonly promptTokens: number
  readonly concurrency: number
  readonly policy: PlanPolicy
  readonly abilities: WorkerAbilities
  /** The regime of RDMA collectives where it was not measured; null: unknown, plan for the slow one. */
  readonly regime: CollectiveRegime | null
  readonly prices: PlanPrices | null
}

export type StrategyName =
  | 'single'
  | 'pipeline'
  | 'tensor'
  | 'uneven-tensor'
  | 'expert'
  | 'tensor-pipeline'
  | 'replicas'

/** What a group is to do: obeyed as it stands. */
export interface PlacementPlan {
  readonly strategy: StrategyName
  readonly groups: readonly PlannedGroup[]
}

export interface PlannedGroup {
  readonly stages: readonly PlannedStage[]
}

export interface PlannedStage {
  readonly layers: { readonly from: number; readonly to: number }
  readonly sharing: 'alone' | 'tensor' | 'expert'
  readonly world: 'none' | 'ring' | 'jaccl'
  readonly ranks: readonly PlannedRank[]
}

export interface PlannedRank {
  readonly machine: MachineId
  readonly share: number
  readonly memoryBytes: number
}

export interface Range {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** What happens when one machine is lost. */
export interface LossOutcome {
  readonly machine: MachineId
  readonly survives: boolean
  readonly gapSeconds: number | null
  readonly how: string
}

export interface PlanFigures {
  readonly firstTokenSeconds: Range
  readonly tokensPerSecondAlone: Range
  /** One request grown to the whole asked context. */
  readonly tokensPerSecondFullContext: number
  /** All requests together at the asked concurrency. */
  readonly tokensPerSecondLoaded: Range
  readonly contextTokensLongest: number
  readonly watts: number
  readonly tokensPerJoule: number
  readonly pricePerMillionTokens: number | null
  readonly losses: readonly LossOutcome[]
  readonly restsOn: 'measured here' | 'chip table' | 'partly measured here'
  /** The regime of collectives that the figures assume; null where there are none. */
  readonly regime: CollectiveRegime | 'measured' | 'either' | null
  readonly decodeTerms: Terms
}

export interface RankedPlan {
  readonly placement: PlacementPlan
  readonly figures: PlanFigures
  /** Null when the worker can run it; else why not. */
  readonly cannotRun: string | null
  readonly why: string
  /** Findings of the knowledge base that `why` rests on. */
  readonly kbFindings: readonly number[]
}

export type PlanOutcome =
  | {
      readonly kind: 'planned'
      /** Best first; those that cannot be run come after, in the same order. */
      readonly plans: readonly RankedPlan[]
      readonly chosen: RankedPlan | null
      readonly warnings: readonly string[]
    }
  | { readonly kind: 'memory-short'; readonly shortage: Shortage }
  | { readonly kind: 'no-machines'; readonly message: string }

/** A model that fits nowhere: by how much, and what would do. */
export interface Shortage {
  readonly neededBytes: number
  readonly freeBytes: number
  readonly missingBytes: number
  readonly remedies: readonly string[]
  readonly message: string
  readonly kbFindings: readonly number[]
}
