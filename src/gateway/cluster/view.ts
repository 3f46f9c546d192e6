// The cluster as the page and the command line show it: measured things with their age, nothing guessed.
import { roster, wantedDeployments } from '../../core/cluster/desired.ts'
import { type GroupPlan, placedRanks } from '../../core/cluster/group-plan.ts'
import type { GroupView } from '../../core/cluster/groups.ts'
import { type MachineState, liveRecords, machineName, ownRecord } from '../../core/cluster/state.ts'
import { reservedBytes } from '../../core/cluster/record.ts'
import { settledCoordinator } from '../../core/membership/view.ts'
import type { MachineId } from '../../core/ids.ts'
import { lossForecasts } from '../../core/serving/survival.ts'
import { conditionOf } from '../../core/serving/waiting.ts'
import type { ClusterView, DeploymentView, MachineView, SlowView } from '../../wire/cluster-view.ts'

export function clusterView(
  state: MachineState,
  nowMs: number,
  slow: readonly SlowView[] = [],
): ClusterView {
  return {
    self: state.self.id,
    coordinator: settledCoordinator(state, nowMs),
    epoch: state.epochSeen.counter,
    machines: machineViews(state, nowMs),
    deployments: deploymentViews(state, nowMs),
    ending: endingViews(state),
    slow: slow.map((one) => ({ ...one, machine: nameOf(state, one.machine as MachineId) })),
  }
}

function endingViews(state: MachineState): ClusterView['ending'] {
  const wanted = new Set(wantedDeployments(state.registers).map((deployment) => deployment.id))
  return liveRecords(state).flatMap((record) =>
    record.holdings
      .filter(({ plan }) => !wanted.has(plan.deployment))
      .map(({ plan, state: phase }) => ({
        deployment: plan.deployment,
        machine: record.name,
        group: plan.group,
        state: phase,
      })),
  )
}

export function machineViews(state: MachineState, nowMs: number): MachineView[] {
  const own = ownRecord(state)
  const views: MachineView[] = [
    { ...machineFields(own), id: own.id, name: own.name, state: 'alive', heardAgoMs: 0, links: [] },
  ]
  const known = roster(state.registers)
  for (const peer of state.peers.values()) {
    // Strangers and machines that were removed are nobody's business here.
    if (!known.has(peer.id)) continue
    const { record } = peer
    views.push({
      ...machineFields(record),
      id: peer.id,
      name: record?.name ?? known.get(peer.id)?.name ?? peer.id,
      state: peer.status,
      heardAgoMs: nowMs - peer.heardMs,
      links: [...peer.links].map(([link, heardMs]) => ({ link, heardAgoMs: nowMs - heardMs })),
    })
  }
  for (const entry of known.values()) {
    if (entry.machine === own.id || state.peers.has(entry.machine)) continue
    // In the roster, but not heard since this daemon started.
    const sinceStart = nowMs - state.startedMs
    views.push({
      ...machineFields(null),
      id: entry.machine,
      name: entry.name,
      state: 'dead',
      heardAgoMs: sinceStart,
      links: [],
    })
  }
  return views.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function machineFields(
  record: ReturnType<typeof ownRecord> | null,
): Pick<
  MachineView,
  'role' | 'version' | 'platform' | 'memoryLendBytes' | 'memoryReservedBytes' | 'models' | 'refuses'
> {
  return {
    role: record?.role ?? null,
    version: record?.version ?? null,
    platform: record?.platform ?? null,
    memoryLendBytes: record?.memoryLendBytes ?? null,
    memoryReservedBytes: record === null ? null : reservedBytes(record.holdings),
    models: record?.models.map((model) => model.name) ?? [],
    refuses: record === null || record.accepts.ok ? null : record.accepts.reason,
  }
}

export function deploymentViews(state: MachineState, nowMs: number): DeploymentView[] {
  return wantedDeployments(state.registers).map((deployment) => {
    const condition = conditionOf(state, deployment, nowMs)
    return {
      id: deployment.id,
      model: deployment.model.name,
      digest: deployment.model.digest,
      strategy: deployment.strategy,
      replicas: deployment.replicas,
      status: condition.status,
      detail: condition.detail,
      losses: lossForecasts(state, deployment, condition.groups).map((loss) => ({
        ...loss,
        machine: nameOf(state, loss.machine),
      })),
      groups: condition.groups.map((group) => groupView(state, { group, nowMs })),
    }
  })
}

function nameOf(state: MachineState, id: MachineId): string {
  return machineName(state, id) ?? id
}

function memoryOf(plan: GroupPlan, rank: number): number {
  return placedRanks(plan)[rank]?.memoryBytes ?? 0
}

function groupView(
  state: MachineState,
  about: { group: GroupView; nowMs: number },
): DeploymentView['groups'][number] {
  const { group, nowMs } = about
  const { reason } = group.plan
  return {
    id: group.group,
    status: group.status,
    strategy: group.plan.strategy,
    why: reason?.why ?? null,
    predicted: reason?.predicted ?? null,
    sinceMs: nowMs - group.sinceMs,
    tokensPerSecond: Math.max(0, ...group.ranks.map((rank) => rank.holding?.tokensPerSecond ?? 0)),
    stages: group.plan.stages.map((stage, index) => ({
      layers: [stage.layers[0], stage.layers[1]],
      backend: stage.backend,
      backendWhy: stage.why ?? '',
      ranks: group.ranks
        .filter((rank) => rank.stage === index)
        .map((rank) => ({
          rank: rank.rank,
          machine: nameOf(state, rank.machine),
          machineId: rank.machine,
          pid: rank.holding?.pid ?? null,
          layers: [rank.layers[0], rank.layers[1]],
          state: rank.state,
          phase: rank.holding?.phase ?? '',
          fraction: rank.holding?.fraction ?? 0,
          memoryBytes: memoryOf(group.plan, rank.rank),
          activeBytes: rank.holding?.activeBytes ?? 0,
          tokens: rank.holding?.tokens ?? 0,
        })),
    })),
  }
}
