// Questions for the planner, made from the words a person would use.
import { parseCluster } from '../src/core/plan/ask/cluster-string.ts'
import type {
  PlanModel,
  PlanOutcome,
  PlanRequest,
  WorkerAbilities,
} from '../src/core/plan/types.ts'
import { findModel } from '../src/models/catalogue.ts'
import { tables } from './planner-rows.ts'

export const everything: WorkerAbilities = {
  pipeline: true,
  tensor: true,
  unevenTensor: true,
  tensorPipeline: true,
  expert: true,
  replicas: true,
}

export function model(name: string): PlanModel {
  const found = findModel(name, tables)
  if (found.kind === 'unknown') throw new Error(found.message)
  return found.model
}

export function request(
  name: string,
  cluster: string,
  changes: Partial<PlanRequest> = {},
): PlanRequest {
  const parsed = parseCluster(cluster, tables)
  if (parsed.kind === 'misread') throw new Error(parsed.message)
  return {
    machines: parsed.machines,
    links: parsed.links,
    worlds: [],
    model: model(name),
    contextTokens: 8192,
    promptTokens: 1024,
    concurrency: 1,
    policy: { goal: 'fastest', pin: [], avoid: [], keepFree: [] },
    abilities: everything,
    regime: 'slow',
    prices: null,
    ...changes,
  }
}

export function planned(outcome: PlanOutcome): Extract<PlanOutcome, { kind: 'planned' }> {
  if (outcome.kind === 'planned') return outcome
  throw new Error(outcome.kind === 'memory-short' ? outcome.shortage.message : outcome.message)
}
