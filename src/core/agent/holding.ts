// A rank on this machine as it begins: its memory is reserved, and nothing else has happened yet.
import { planHash } from '../cluster/group-plan.ts'
import type { OwnHolding } from '../cluster/state.ts'

export function newHolding(from: {
  plan: OwnHolding['plan']
  rank: number
  epoch: OwnHolding['epoch']
  wish: number
  nowMs: number
}): OwnHolding {
  const { plan, rank, epoch, wish, nowMs } = from
  return {
    plan,
    planHash: planHash(plan),
    rank,
    epoch,
    wish,
    state: 'reserved',
    sinceMs: nowMs,
    pid: null,
    endpoint: null,
    phase: 'reserved',
    fraction: 0,
    tokens: 0,
    contextTokens: 0,
    activeBytes: 0,
    tokensPerSecond: 0,
    statsMs: nowMs,
    committed: null,
    launchedMs: null,
    lastFrameMs: nowMs,
    step: 0,
    stepMs: nowMs,
    busy: false,
    stop: null,
    reformPlan: null,
  }
}
