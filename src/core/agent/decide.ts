// What an agent does by itself: launch what was committed, give back what was not, watch progress
// rather than liveness, and make sure that what must end has ended.
import { type Decision, decision } from '../cluster/decision.ts'
import { type MachineState, type OwnHolding, undeadPhase } from '../cluster/state.ts'
import { limits } from '../limits.ts'
import { stopHolding } from './obey.ts'
import { planted } from '../planted.ts'

export function decideAgent(state: MachineState, nowMs: number): Decision {
  const out = decision()
  for (const holding of state.holdings.values()) {
    if (holding.stop !== null) pressStop(holding, nowMs, out)
    else if (holding.state === 'reserved') expire(holding, nowMs, out)
    else if (holding.launchedMs === null) launch(holding, nowMs, out)
    else watch(holding, nowMs, out)
  }
  return out
}

function expire(holding: OwnHolding, nowMs: number, out: Decision): void {
  if (nowMs - holding.sinceMs < limits.reservationMsMax) return
  out.events.push({ kind: 'holding-removed', group: holding.plan.group, rank: holding.rank })
}

function launch(holding: OwnHolding, nowMs: number, out: Decision): void {
  const { committed, plan, rank } = holding
  if (committed === null) return
  out.events.push({
    kind: 'holding-changed',
    group: plan.group,
    rank,
    change: { launchedMs: nowMs, lastFrameMs: nowMs },
  })
  out.effects.push({ kind: 'rank-start', plan, rank, ...committed })
}

function watch(holding: OwnHolding, nowMs: number, out: Decision): void {
  const cause = overdue(holding, nowMs)
  if (cause !== null)
    stopHolding(holding, { cause, asked: false, drain: false, ordered: false, nowMs, out })
}

/** Why this rank can no longer be trusted to get anywhere, or null. */
function overdue(holding: OwnHolding, nowMs: number): string | null {
  const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`
  if (holding.state === 'starting') {
    const waited = nowMs - (holding.launchedMs ?? nowMs)
    return waited > limits.rankSpawnMsMax
      ? `the rank said nothing for ${seconds(waited)} after its start`
      : null
  }
  if (holding.state === 'loading') {
    const silent = nowMs - holding.lastFrameMs
    return silent > limits.rankLoadSilenceMsMax
      ? `loading made no progress for ${seconds(silent)} (${holding.phase})`
      : null
  }
  if (holding.state === 'orphaned') {
    const waited = nowMs - holding.sinceMs
    return waited > limits.orphanMsMax
      ? `${holding.phase}, and nobody took its place for ${seconds(waited)}`
      : null
  }
  const stalled = nowMs - holding.stepMs
  if (holding.busy && stalled > limits.rankStallMsMax) {
    return `the rank stalled: it had work but took no step for ${seconds(stalled)}`
  }
  return null
}

/** From asking to forcing: a rank inside a native call never sees a polite signal. */
function pressStop(holding: OwnHolding, nowMs: number, out: Decision): void {
  const { stop, plan, rank } = holding
  if (stop === null) return
  const { group } = plan
  const change = (fields: Partial<OwnHolding>): void =>
    void out.events.push({ kind: 'holding-changed', group, rank, change: fields })
  const signal = (name: 'TERM' | 'KILL'): void => {
    const { cause, ordered } = stop
    out.effects.push({ kind: 'rank-stop', group, rank, signal: name, cause, ordered })
  }
  const waitedMs = nowMs - stop.sinceMs
  if (stop.draining) {
    // Finishing its answers is no licence to hang.
    if (waitedMs < limits.drainMsMax && overdue(holding, nowMs) === null) return
    change({ phase: 'stopping', stop: { ...stop, draining: false, sinceMs: nowMs } })
    signal('TERM')
    return
  }
  const dueMs =
    stop.killedMs === null
      ? stop.sinceMs + limits.rankTermMsMax
      : stop.killedMs + limits.rankKillRepeatMs
  if (nowMs >= dueMs && !(planted.killedOnce && stop.killedMs !== null)) {
    change({ stop: { ...stop, killedMs: nowMs } })
    signal('KILL')
  }
  if (waitedMs >= limits.rankUndeadMs && holding.phase !== undeadPhase)
    change({ phase: undeadPhase })
}
