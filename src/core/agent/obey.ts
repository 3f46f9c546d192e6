// What an agent does with an order: it checks the epoch and its own memory, then obeys or refuses.
import { type Decision, decision } from '../cluster/decision.ts'
import { planHash, placedRanks } from '../cluster/group-plan.ts'
import type { GroupMessage } from '../cluster/messages.ts'
import { compareEpochs, reservedBytes } from '../cluster/record.ts'
import { type MachineState, type OwnHolding, holdingKey } from '../cluster/state.ts'
import type { GroupId, MachineId } from '../ids.ts'

type Order<Kind extends GroupMessage['kind']> = Extract<GroupMessage, { kind: Kind }>

export function obeyPrepare(
  state: MachineState,
  order: Order<'group-prepare'>,
  at: { from: MachineId; nowMs: number },
): Decision {
  const out = decision()
  const { plan, epoch, wish } = order
  const mine = placedRanks(plan).filter((rank) => rank.machine === state.self.id)
  const reason = refusal(
    state,
    order,
    mine.reduce((sum, rank) => sum + rank.memoryBytes, 0),
  )
  if (reason !== null) {
    const { group, formation } = plan
    const message = {
      kind: 'group-refused',
      group,
      formation,
      reason,
      epochSeen: state.epochSeen,
    } as const
    out.effects.push({ kind: 'message-send', to: at.from, message })
    return out
  }
  out.events.push({ kind: 'epoch-seen', epoch })
  for (const { rank } of mine) {
    out.events.push({
      kind: 'holding-added',
      holding: newHolding({ plan, rank, epoch, wish, nowMs: at.nowMs }),
    })
  }
  const ranks = mine.map((placed) => placed.rank)
  if (placedRanks(plan).length > 1) {
    out.effects.push({ kind: 'endpoints-reserve', plan, ranks, to: at.from })
  } else {
    const { group, formation } = plan
    const endpoints = ranks.map((rank) => ({ rank, endpoint: null }))
    const message = { kind: 'group-prepared', group, formation, endpoints } as const
    out.effects.push({ kind: 'message-send', to: at.from, message })
  }
  return out
}

function refusal(
  state: MachineState,
  order: Order<'group-prepare'>,
  neededBytes: number,
): string | null {
  const { plan, epoch } = order
  if (compareEpochs(epoch, state.epochSeen) < 0) {
    return `epoch ${epoch.counter} of ${epoch.machine} is older than epoch ${state.epochSeen.counter}`
  }
  if (state.holdings.has(holdingKey(plan.group, 0)) || heldRanks(state, plan.group).length > 0) {
    return `group ${plan.group} is already held here`
  }
  if (state.self.role === 'client') return `${state.self.name} is a client and holds no ranks`
  if (!state.self.accepts.ok) return state.self.accepts.reason
  const freeBytes = state.self.memoryLendBytes - reservedBytes([...state.holdings.values()])
  if (neededBytes > freeBytes) {
    return `${state.self.name} has ${freeBytes} bytes free, the plan needs ${neededBytes}`
  }
  return null
}

function newHolding(from: {
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
  }
}

export function obeyCommit(state: MachineState, order: Order<'group-commit'>): Decision {
  const out = decision()
  if (compareEpochs(order.epoch, state.epochSeen) < 0) return out
  for (const holding of heldRanks(state, order.group)) {
    if (holding.state !== 'reserved' || holding.plan.formation !== order.formation) continue
    const { endpoints, secret } = order
    out.events.push({ kind: 'epoch-seen', epoch: order.epoch })
    out.events.push({
      kind: 'holding-changed',
      group: order.group,
      rank: holding.rank,
      change: { committed: { endpoints, secret }, state: 'starting', phase: 'start' },
    })
  }
  return out
}

export function obeyStop(state: MachineState, order: Order<'group-stop'>, nowMs: number): Decision {
  const out = decision()
  if (compareEpochs(order.epoch, state.epochSeen) < 0) return out
  for (const holding of heldRanks(state, order.group)) {
    if (holding.stop !== null) continue
    out.events.push({ kind: 'epoch-seen', epoch: order.epoch })
    stopHolding(holding, { cause: order.reason, asked: true, drain: order.drain, nowMs, out })
  }
  return out
}

/** Begins the end of a rank here: gently when it may finish its answers, at once otherwise. */
export function stopHolding(
  holding: OwnHolding,
  how: { cause: string; asked: boolean; drain: boolean; nowMs: number; out: Decision },
): void {
  const { cause, asked, nowMs, out } = how
  const { group } = holding.plan
  const { rank } = holding
  if (holding.launchedMs === null) {
    out.events.push({ kind: 'holding-removed', group, rank })
    return
  }
  const drain = how.drain && holding.state === 'ready'
  const stop = { cause, asked, sinceMs: nowMs, draining: drain, killed: false }
  out.events.push({ kind: 'holding-changed', group, rank, change: { state: 'stopping', stop } })
  if (drain) out.effects.push({ kind: 'rank-drain', group, rank })
  else out.effects.push({ kind: 'rank-stop', group, rank, signal: 'TERM', cause })
}

export function heldRanks(state: MachineState, group: GroupId): readonly OwnHolding[] {
  return [...state.holdings.values()].filter((holding) => holding.plan.group === group)
}
