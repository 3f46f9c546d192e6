// What an agent does with an order: it checks the epoch and its own memory, then obeys or refuses. Orders
// come twice, late and out of turn; obeying one again changes nothing.
import { type Decision, decision } from '../cluster/decision.ts'
import { type GroupPlan, placedRanks, planHash } from '../cluster/group-plan.ts'
import type { GroupMessage } from '../cluster/messages.ts'
import { type Epoch, compareEpochs, reservedBytes } from '../cluster/record.ts'
import { type MachineState, type OwnHolding, acceptsNow, drainingPhase } from '../cluster/state.ts'
import type { GroupId, MachineId } from '../ids.ts'
import { planted } from '../planted.ts'
import { newHolding } from './holding.ts'
import { isReform, obeyReform, otherVersion, relink } from './reform.ts'

type Order<Kind extends GroupMessage['kind']> = Extract<GroupMessage, { kind: Kind }>

export function obeyPrepare(
  state: MachineState,
  order: Order<'group-prepare'>,
  at: { from: MachineId; nowMs: number },
): Decision {
  const out = decision()
  const { plan, epoch, wish } = order
  const held = heldRanks(state, plan.group)
  if (isReform(order, held) && !isStale(state, epoch))
    return obeyReform(state, order, { ...at, held })
  const reason = refusal(state, order, held)
  if (reason !== null) {
    const { group, formation } = plan
    const { epochSeen } = state
    const message = { kind: 'group-refused', group, formation, reason, epochSeen } as const
    out.effects.push({ kind: 'message-send', to: at.from, message })
    return out
  }
  out.events.push({ kind: 'epoch-seen', epoch })
  const ranks = ranksHere(state, plan).map((placed) => placed.rank)
  if (held.length === 0) {
    for (const rank of ranks) {
      const holding = newHolding({ plan, rank, epoch, wish, nowMs: at.nowMs })
      out.events.push({ kind: 'holding-added', holding })
    }
  }
  const isAnswered = held.length > 0 && held.every((holding) => holding.endpoint !== null)
  if (placedRanks(plan).length > 1 && !isAnswered) {
    if (held.length === 0) out.effects.push({ kind: 'endpoints-reserve', plan, ranks, to: at.from })
  } else {
    const { group, formation } = plan
    const endpoints = ranks.map((rank) => {
      const endpoint = held.find((holding) => holding.rank === rank)?.endpoint ?? null
      return { rank, endpoint }
    })
    const message = { kind: 'group-prepared', group, formation, endpoints } as const
    out.effects.push({ kind: 'message-send', to: at.from, message })
  }
  return out
}

function ranksHere(state: MachineState, plan: GroupPlan): ReturnType<typeof placedRanks> {
  return placedRanks(plan).filter((rank) => rank.machine === state.self.id)
}

function isStale(state: MachineState, epoch: Epoch): boolean {
  return compareEpochs(epoch, state.epochSeen) < 0 && !planted.epochUnchecked
}

function refusal(
  state: MachineState,
  { plan, epoch, version }: Order<'group-prepare'>,
  held: readonly OwnHolding[],
): string | null {
  if (isStale(state, epoch)) {
    return `epoch ${epoch.counter} of ${epoch.machine} is older than epoch ${state.epochSeen.counter}`
  }
  if (held.length > 0) {
    // The same order once more, because our answer was lost, is no second group.
    const hash = planHash(plan)
    const isSame = held.every((own) => own.state === 'reserved' && own.planHash === hash)
    return isSame ? null : `group ${plan.group} is already held here`
  }
  const { self } = state
  if (self.role === 'client') return `${self.name} is a client and holds no ranks`
  const accepts = acceptsNow(state)
  if (!accepts.ok) return accepts.reason
  if (!self.models.some((model) => model.digest === plan.model.digest))
    return `${self.name} does not have the files of ${plan.model.name}`
  const mine = ranksHere(state, plan)
  if (mine.length === 0) return `the plan has no rank for ${self.name}`
  const wrongVersion = otherVersion(self, { plan, version })
  if (wrongVersion !== null) return wrongVersion
  const neededBytes = mine.reduce((sum, rank) => sum + rank.memoryBytes, 0)
  const freeBytes = self.memoryLendBytes - reservedBytes([...state.holdings.values()])
  if (neededBytes > freeBytes) {
    return `${self.name} has ${freeBytes} bytes free, the plan needs ${neededBytes}`
  }
  return null
}

export function obeyCommit(state: MachineState, order: Order<'group-commit'>): Decision {
  const out = decision()
  if (isStale(state, order.epoch)) return out
  for (const holding of heldRanks(state, order.group)) {
    relink(holding, order, out)
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

/** Copies are made one at a time for each model; an order that comes again while one runs changes nothing. */
export function obeyFetch(state: MachineState, order: Order<'model-fetch'>): Decision {
  const out = decision()
  if (isStale(state, order.epoch)) return out
  const { model, from } = order
  const { models, fetches = [] } = state.self
  const isHere = models.some((known) => known.digest === model.digest)
  const isComing = fetches.some((fetch) => fetch.digest === model.digest && fetch.failure === null)
  if (!isHere && !isComing) out.effects.push({ kind: 'model-fetch', model, from })
  return out
}

export function obeyStop(state: MachineState, order: Order<'group-stop'>, nowMs: number): Decision {
  const out = decision()
  if (isStale(state, order.epoch)) return out
  const { reason, drain, except, reservedOnly = false } = order
  for (const holding of heldRanks(state, order.group)) {
    if (reservedOnly && holding.state !== 'reserved') continue
    const next = holding.reformPlan === null ? null : planHash(holding.reformPlan)
    if (except !== undefined && (holding.planHash === except || next === except)) continue
    // Told to finish its answers first, then to go at once: the second order counts too.
    const isDone = holding.stop !== null && (drain || !holding.stop.draining)
    if (isDone) continue
    out.events.push({ kind: 'epoch-seen', epoch: order.epoch })
    stopHolding(holding, { cause: reason, asked: true, drain, ordered: true, nowMs, out })
  }
  return out
}

/** Begins the end of a rank here: gently when it may finish its answers, at once otherwise. */
export function stopHolding(
  holding: OwnHolding,
  how: {
    cause: string
    asked: boolean
    drain: boolean
    ordered: boolean
    nowMs: number
    out: Decision
  },
): void {
  const { cause, asked, ordered, nowMs, out } = how
  const { group } = holding.plan
  const { rank } = holding
  const isForgotten = planted.rankForgotten && holding.state !== 'ready'
  if (holding.launchedMs === null || isForgotten) {
    out.events.push({ kind: 'holding-removed', group, rank })
    return
  }
  // A stop that is under way was asked for or not when it began; hurrying it changes nothing in that.
  const begun = holding.stop
  const drain = how.drain && holding.state === 'ready'
  const stop = {
    cause: begun?.cause ?? cause,
    asked: begun?.asked ?? asked,
    ordered: begun?.ordered ?? ordered,
    sinceMs: nowMs,
    draining: drain,
    killedMs: null,
  }
  const phase = drain ? drainingPhase : 'stopping'
  const change = { state: 'stopping', phase, stop } as const
  out.events.push({ kind: 'holding-changed', group, rank, change })
  // Only the head knows when the group's answers are finished; the other ranks go when it has gone.
  if (drain && rank === 0) out.effects.push({ kind: 'rank-drain', group, rank })
  else if (!drain)
    out.effects.push({ kind: 'rank-stop', group, rank, signal: 'TERM', cause, ordered })
}

export function heldRanks(state: MachineState, group: GroupId): readonly OwnHolding[] {
  return [...state.holdings.values()].filter((holding) => holding.plan.group === group)
}
