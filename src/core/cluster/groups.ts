// Groups as they stand, put together from what each machine says of its own ranks.
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import { type GroupPlan, placedRanks } from './group-plan.ts'
import type { Epoch, Holding, RankState } from './record.ts'
import { type MachineState, ownRecord } from './state.ts'
import { planted } from '../planted.ts'

export interface RankView {
  readonly rank: number
  readonly stage: number
  readonly machine: MachineId
  readonly layers: readonly [number, number]
  /** "unknown": its machine lives but has not yet said what it runs. */
  readonly state: RankState | 'missing' | 'unknown'
  readonly holding: Holding | null
}

export type GroupStatus = 'forming' | 'ready' | 'stopping' | 'broken'

export interface GroupView {
  readonly group: GroupId
  readonly deployment: DeploymentId
  readonly plan: GroupPlan
  readonly epoch: Epoch
  readonly status: GroupStatus
  readonly ranks: readonly RankView[]
  /** Oldest moment at which its present state began. */
  readonly sinceMs: number
}

/** Every group of which some live machine holds a rank. */
export function groupsSeen(state: MachineState): readonly GroupView[] {
  const held = new Map<GroupId, { plan: GroupPlan; epoch: Epoch; holdings: Map<number, Holding> }>()
  const records = [ownRecord(state)]
  for (const peer of state.peers.values()) {
    if (peer.status !== 'dead' && peer.record !== null) records.push(peer.record)
  }
  for (const record of records) {
    for (const holding of record.holdings) {
      const { group, formation } = holding.plan
      const known = held.get(group)
      const entry = known ?? { plan: holding.plan, epoch: holding.epoch, holdings: new Map() }
      if (formation > entry.plan.formation) {
        entry.plan = holding.plan
        entry.epoch = holding.epoch
      }
      // A machine thought dead may come back with a rank that has been replaced since.
      const other = entry.holdings.get(holding.rank)
      if (other === undefined || other.plan.formation <= formation)
        entry.holdings.set(holding.rank, holding)
      held.set(group, entry)
    }
  }
  return [...held.values()].map((seen) => viewOf(state, seen))
}

interface Seen {
  readonly plan: GroupPlan
  readonly epoch: Epoch
  readonly holdings: ReadonlyMap<number, Holding>
}

function viewOf(state: MachineState, { plan, epoch, holdings }: Seen): GroupView {
  const ranks = placedRanks(plan).map((placed): RankView => {
    const holding = holdings.get(placed.rank) ?? null
    const layers = plan.stages[placed.stage]?.layers ?? [0, 0]
    const { rank, stage, machine } = placed
    const absence = hasSpoken(state, machine) ? 'missing' : 'unknown'
    // It was there before the group was put together anew, and has yet to hear where the others are.
    const isBehind = holding !== null && holding.plan.formation < plan.formation
    const isKept = isBehind && (holding.state === 'ready' || holding.state === 'orphaned')
    const rankState = isKept ? 'loading' : (holding?.state ?? absence)
    return { rank, stage, machine, layers, state: rankState, holding }
  })
  const since = ranks.map((rank) => rank.holding?.sinceMs ?? 0)
  return {
    group: plan.group,
    deployment: plan.deployment,
    plan,
    epoch,
    status: statusOf(ranks),
    ranks,
    sinceMs: Math.max(...since),
  }
}

/** False only for a machine that lives and whose record has not come yet: its ranks are no loss. */
function hasSpoken(state: MachineState, machine: MachineId): boolean {
  const peer = state.peers.get(machine)
  return peer === undefined || peer.status === 'dead' || peer.record !== null
}

function statusOf(ranks: readonly RankView[]): GroupStatus {
  const isLost = ranks.some((rank) => rank.state === 'missing' || rank.state === 'orphaned')
  if (planted.stageLossUnseen && isLost) return 'ready'
  if (isLost) return 'broken'
  if (ranks.some((rank) => rank.state === 'stopping')) return 'stopping'
  return ranks.every((rank) => rank.state === 'ready') ? 'ready' : 'forming'
}
