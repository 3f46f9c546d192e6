// Groups as they stand, put together from what each machine says of its own ranks.
import type { DeploymentId, GroupId, MachineId } from '../ids.ts'
import { type GroupPlan, placedRanks } from './group-plan.ts'
import { type Epoch, type Holding, type RankState, compareEpochs } from './record.ts'
import { type MachineState, drainingPhase, liveRecords } from './state.ts'
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
  readonly planHash: string
  readonly epoch: Epoch
  readonly status: GroupStatus
  readonly ranks: readonly RankView[]
  /** Machines that came back with a rank whose place another machine has taken. */
  readonly leftovers: readonly MachineId[]
  /** Oldest moment at which its present state began. */
  readonly sinceMs: number
}

/** Every group of which some live machine holds a rank. */
export function groupsSeen(state: MachineState): readonly GroupView[] {
  const groups = new Map<GroupId, Seen>()
  for (const record of liveRecords(state)) {
    for (const holding of record.holdings) {
      const { group } = holding.plan
      const seen = groups.get(group) ?? { newest: holding, held: [] }
      if (isNewer(holding, seen.newest)) seen.newest = holding
      seen.held.push({ machine: record.id, holding })
      groups.set(group, seen)
    }
  }
  return [...groups.values()].map((seen) => viewOf(state, seen))
}

interface Seen {
  /** Of the latest formation: its plan is the group's. */
  newest: Holding
  readonly held: { readonly machine: MachineId; readonly holding: Holding }[]
}

/** Two coordinators may have put a group together again at once; the higher epoch counts. */
function isNewer(one: Holding, other: Holding): boolean {
  const formations = one.plan.formation - other.plan.formation
  return formations > 0 || (formations === 0 && compareEpochs(one.epoch, other.epoch) > 0)
}

function viewOf(state: MachineState, { newest, held }: Seen): GroupView {
  const { plan, planHash, epoch } = newest
  const placed = placedRanks(plan)
  const ranks = placed.map((place): RankView => {
    const { rank, stage, machine } = place
    const found = held.find((one) => one.machine === machine && one.holding.rank === rank)
    const holding = found?.holding ?? null
    const layers = plan.stages[stage]?.layers ?? [0, 0]
    const absence = hasSpoken(state, machine) ? 'missing' : 'unknown'
    // It was there before the group was put together anew, and has yet to hear where the others are.
    const isKept =
      holding !== null &&
      holding.planHash !== planHash &&
      (holding.state === 'ready' || holding.state === 'orphaned')
    return {
      rank,
      stage,
      machine,
      layers,
      holding,
      state: isKept ? 'loading' : (holding?.state ?? absence),
    }
  })
  const since = ranks.map((rank) => rank.holding?.sinceMs ?? 0)
  return {
    group: plan.group,
    deployment: plan.deployment,
    plan,
    planHash,
    epoch,
    status: statusOf(ranks),
    ranks,
    leftovers: held
      .filter(
        ({ machine, holding }) => isStaying(holding) && placed[holding.rank]?.machine !== machine,
      )
      .map(({ machine }) => machine),
    sinceMs: Math.max(...since),
  }
}

/** Not on its way out, or only when it has finished answers that it cannot finish without its group. */
function isStaying({ state, phase }: Holding): boolean {
  return state !== 'stopping' || phase === drainingPhase
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
