// What ranks say of themselves, taken into the holdings.
import { assertNever } from '../assert.ts'
import { type Decision, decision } from '../cluster/decision.ts'
import { type MachineState, type OwnHolding, holdingKey } from '../cluster/state.ts'
import { limits } from '../limits.ts'
import type { MachineInput, RankProgress } from './inputs.ts'

type ReportInput = Extract<MachineInput, { kind: 'rank-report' }>

export function takeReport(state: MachineState, input: ReportInput, nowMs: number): Decision {
  const out = decision()
  const { group, rank, report } = input
  const holding = state.holdings.get(holdingKey(group, rank))
  if (holding === undefined) return out
  const change = (fields: Partial<OwnHolding>): void => {
    out.events.push({
      kind: 'holding-changed',
      group,
      rank,
      change: { lastFrameMs: nowMs, ...fields },
    })
  }
  switch (report.kind) {
    case 'started':
      change({ pid: report.pid })
      return out
    case 'progressed': {
      if (holding.stop !== null || holding.state === 'ready') return out
      const { phase, fraction } = report
      // A rank may report every tensor; the cluster wants to know once a second, and of each new phase.
      const isNews = phase !== holding.phase || nowMs - holding.statsMs >= progressEveryMs
      change(isNews ? { state: 'loading', phase, fraction, statsMs: nowMs } : {})
      return out
    }
    case 'ready':
      if (holding.stop !== null) return out
      change({
        state: 'ready',
        phase: 'ready',
        fraction: 1,
        stepMs: nowMs,
        contextTokens: report.contextTokens,
        activeBytes: report.activeBytes,
        ...(report.loadMs === undefined ? {} : { loadMs: report.loadMs }),
      })
      return out
    case 'orphaned':
      if (holding.stop !== null || holding.state !== 'ready') return out
      change({ state: 'orphaned', phase: report.cause })
      return out
    case 'relinked':
      if (holding.stop !== null || holding.state !== 'loading') return out
      change({ state: 'ready', phase: 'ready', fraction: 1, stepMs: nowMs })
      return out
    case 'drained': {
      if (holding.stop === null || !holding.stop.draining) return out
      const { cause, ordered } = holding.stop
      change({ phase: 'stopping', stop: { ...holding.stop, draining: false, sinceMs: nowMs } })
      out.effects.push({ kind: 'rank-stop', group, rank, signal: 'TERM', cause, ordered })
      return out
    }
    case 'failed':
      if (holding.stop === null) {
        const { cause } = report
        const how = { asked: false, ordered: false, draining: false, killedMs: null }
        change({ state: 'stopping', stop: { cause, sinceMs: nowMs, ...how } })
      }
      return out
    case 'exited':
      out.events.push(ended(holding, report))
      return out
    default:
      return assertNever(report)
  }
}

function ended(
  holding: OwnHolding,
  exit: { cause: string; tokens: number; steps?: number },
): Decision['events'][number] {
  const { stop, plan, rank } = holding
  const worked = rank === 0 ? exit.tokens : Math.max(exit.tokens, exit.steps ?? 0)
  return {
    kind: 'rank-ended',
    group: plan.group,
    rank,
    cause: stop === null ? exit.cause : stop.cause,
    excused: worked >= limits.workedTokensMin,
    asked: stop !== null && stop.asked,
  }
}

const progressEveryMs = 1000
/** Figures are made public this often: news for people, not for every peer at every step. */
const statsEveryMs = 2000

/** How far each rank has come since the last tick. */
export function takeProgress(
  state: MachineState,
  progress: readonly RankProgress[],
  { nowMs, out }: { nowMs: number; out: Decision },
): void {
  for (const seen of progress) {
    const holding = state.holdings.get(holdingKey(seen.group, seen.rank))
    if (holding === undefined) continue
    const { group, rank, step, busy, tokens, tokensPerSecond, activeBytes, queue } = seen
    const usedMs = seen.usedMs ?? holding.usedMs
    const frameMs = nowMs - seen.frameAgeMs
    if (step !== holding.step || busy !== holding.busy) {
      // Work that has just arrived starts its own clock: the idle time before it was no stall.
      const stepMs = holding.busy ? frameMs : nowMs
      const change = { step, busy, lastFrameMs: frameMs, stepMs }
      out.events.push({ kind: 'holding-changed', group, rank, change })
    }
    const news =
      tokens !== holding.tokens ||
      tokensPerSecond !== holding.tokensPerSecond ||
      queue !== (holding.queue ?? 0) ||
      usedMs !== holding.usedMs
    if (news && nowMs - holding.statsMs >= statsEveryMs) {
      const used = usedMs === undefined ? {} : { usedMs }
      const change = { tokens, tokensPerSecond, activeBytes, queue, ...used, statsMs: nowMs }
      out.events.push({ kind: 'holding-changed', group, rank, change })
    }
  }
}
