// A group that lost a stage is put together again around the ranks that are left: they keep process, weights
// and caches, and learn where their neighbours are now.
import { type Decision, decision } from '../cluster/decision.ts'
import { machinesOf, placedRanks, planHash } from '../cluster/group-plan.ts'
import type { GroupMessage } from '../cluster/messages.ts'
import { reservedBytes } from '../cluster/record.ts'
import { type MachineState, type OwnHolding, type SelfState, acceptsNow } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { newHolding } from './holding.ts'

type Prepare = Extract<GroupMessage, { kind: 'group-prepare' }>

/** The coordinator may have slept through our update; ranks of one group run one version. */
export function otherVersion(
  self: SelfState,
  { plan, version }: Pick<Prepare, 'plan' | 'version'>,
): string | null {
  return version !== self.version && machinesOf(plan).length > 1
    ? `${self.name} runs version ${self.version}, the plan is for ${version}`
    : null
}

/** Whether this order puts a group together again that is held here already. */
export function isReform({ plan }: Prepare, held: readonly OwnHolding[]): boolean {
  return held.some((own) => own.plan.formation < plan.formation)
}

export function obeyReform(
  state: MachineState,
  order: Prepare,
  at: { from: MachineId; nowMs: number; held: readonly OwnHolding[] },
): Decision {
  const out = decision()
  const { plan, epoch, wish } = order
  const { group, formation } = plan
  const mine = placedRanks(plan).filter((rank) => rank.machine === state.self.id)
  const fresh = mine.filter((rank) => !at.held.some((own) => own.rank === rank.rank))
  const reason = refusal(state, { order, held: at.held, fresh })
  if (reason !== null) {
    const { epochSeen } = state
    const message = { kind: 'group-refused', group, formation, reason, epochSeen } as const
    out.effects.push({ kind: 'message-send', to: at.from, message })
    return out
  }
  out.events.push({ kind: 'epoch-seen', epoch })
  const hash = planHash(plan)
  const isNew = (own: OwnHolding): boolean =>
    own.planHash !== hash && (own.reformPlan === null || planHash(own.reformPlan) !== hash)
  const ranks = mine.map((rank) => rank.rank)
  if (!at.held.some(isNew) && fresh.length === 0) {
    // Said again: the answer was lost, or the ports are still being found.
    const endpoints = at.held.flatMap(({ rank, endpoint }) =>
      endpoint ? [{ rank, endpoint }] : [],
    )
    const message = { kind: 'group-prepared', group, formation, endpoints } as const
    if (endpoints.length === ranks.length)
      out.effects.push({ kind: 'message-send', to: at.from, message })
    return out
  }
  for (const { rank } of at.held.filter(isNew)) {
    const change = { reformPlan: plan, endpoint: null }
    out.events.push({ kind: 'holding-changed', group, rank, change })
  }
  for (const { rank } of fresh) {
    const holding = newHolding({ plan, rank, epoch, wish, nowMs: at.nowMs })
    out.events.push({ kind: 'holding-added', holding })
  }
  out.effects.push({ kind: 'endpoints-reserve', plan, ranks, to: at.from })
  return out
}

function refusal(
  state: MachineState,
  about: {
    order: Prepare
    held: readonly OwnHolding[]
    fresh: readonly { readonly memoryBytes: number }[]
  },
): string | null {
  const { held, fresh } = about
  const { plan, version } = about.order
  const { self } = state
  const wrongVersion = otherVersion(self, { plan, version })
  if (wrongVersion !== null) return wrongVersion
  const placed = placedRanks(plan)
  for (const own of held) {
    if (placed[own.rank]?.machine !== self.id)
      return `${self.name} still holds rank ${own.rank}, which the plan puts elsewhere`
    const canStay = own.state === 'ready' || own.state === 'orphaned' || own.state === 'reserved'
    if (!canStay) return `rank ${own.rank} on ${self.name} is ${own.state}`
  }
  if (fresh.length === 0) return null
  const accepts = acceptsNow(state)
  if (!accepts.ok) return accepts.reason
  if (!self.models.some((model) => model.digest === plan.model.digest))
    return `${self.name} does not have the files of ${plan.model.name}`
  const neededBytes = fresh.reduce((sum, rank) => sum + rank.memoryBytes, 0)
  const freeBytes = self.memoryLendBytes - reservedBytes([...state.holdings.values()])
  return neededBytes > freeBytes
    ? `${self.name} has ${freeBytes} bytes free, the plan needs ${neededBytes}`
    : null
}

/** A rank that stays hears where the others are. */
export function relink(
  holding: OwnHolding,
  order: Extract<GroupMessage, { kind: 'group-commit' }>,
  out: Decision,
): void {
  const plan = holding.reformPlan
  if (plan === null || plan.formation !== order.formation) return
  const { group, endpoints, secret } = order
  const { rank } = holding
  out.events.push({ kind: 'epoch-seen', epoch: order.epoch })
  out.events.push({
    kind: 'holding-changed',
    group,
    rank,
    change: {
      plan,
      planHash: planHash(plan),
      epoch: order.epoch,
      reformPlan: null,
      committed: { endpoints, secret },
      state: 'loading',
      phase: 'relink',
      fraction: 0,
    },
  })
  out.effects.push({ kind: 'rank-relink', plan, rank, endpoints, secret })
}
