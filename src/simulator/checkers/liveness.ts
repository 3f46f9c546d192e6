// L1–L5: once the faults are over, the cluster comes to rest where it should: one coordinator, every
// deployment that fits ready, every request ended, nothing restarted twice or left over, ghosts gone.
import { roster, wantedDeployments, type WantedDeployment } from '../../core/cluster/desired.ts'
import { reservedBytes } from '../../core/cluster/record.ts'
import { ownRecord } from '../../core/cluster/state.ts'
import { readinessOf } from '../../core/coordinator/backoff.ts'
import { memoryForShare, placeDeployment } from '../../core/coordinator/placement.ts'
import { candidateRecords } from '../../core/coordinator/reconcile.ts'
import { groupId } from '../../core/ids.ts'
import { recentFailures } from '../../core/cluster/state.ts'
import { limits } from '../../core/limits.ts'
import { settledCoordinator } from '../../core/membership/view.ts'
import { loadMsOf } from '../farm.ts'
import type { SimHost } from '../host.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

const coordinatorMsMax = 10_000
const readyMsMax = 15_000
const ghostMsMax = 60_000
/** Nothing refuses to die any more; what was told to has gone. */
const undeadMsMax = 30_000

export function livenessChecker(scene: Scene): Checker {
  const { world, clients } = scene
  const { verdict } = world
  let healedMs: number | null = null
  const lackingSinceMs = new Map<string, number>()
  const startedAfter = new Map<string, Set<string>>()

  return {
    healed() {
      healedMs = world.nowMs
    },
    launched(rank) {
      if (healedMs === null) return
      const started = startedAfter.get(rank.load.model.name) ?? new Set()
      startedAfter.set(rank.load.model.name, started.add(rank.load.group))
    },
    second() {
      checkGhosts()
      if (healedMs === null) return
      const quietMs = world.nowMs - healedMs
      if (quietMs > coordinatorMsMax) checkCoordinator()
      for (const deployment of wanted()) checkReady(deployment)
    },
    ended() {
      for (const request of clients.open) {
        const isServed = readyGroups(request.model) > 0
        const isOld = world.nowMs - request.beganMs > 60_000
        verdict.check(
          'L3',
          !isOld || !isServed,
          () =>
            `gen-${request.answer.number} on ${nameOf(request.host)} has been open for ${world.nowMs - request.beganMs} ms`,
        )
      }
      for (const request of clients.requests) {
        if (request.outcome !== 'open') verdict.check('L3', true, () => '')
      }
      for (const deployment of wanted()) checkRestarts(deployment)
      checkLeftovers()
    },
  }

  function wanted(): readonly WantedDeployment[] {
    const registers = world.hosts.find((host) => host.isRunning)?.life?.machine.state.registers
    return registers === undefined ? [] : wantedDeployments(registers)
  }

  function checkCoordinator(): void {
    const leaders = new Set<string>()
    const acting: string[] = []
    for (const host of world.hosts) {
      const state = host.life?.machine.state
      if (state === undefined) continue
      leaders.add(settledCoordinator(state, host.monotonicMs) ?? 'nobody')
      if (state.term !== null) acting.push(nameOf(host))
    }
    const isOne = leaders.size === 1 && !leaders.has('nobody') && acting.length === 1
    verdict.check(
      'L1',
      isOne,
      () =>
        `followed are ${[...leaders].map((id) => id.slice(0, 8)).join()}; acting are ${acting.join() || 'none'}`,
    )
  }

  /** Groups of a model all of whose ranks are up and ready, in truth. */
  function readyGroups(model: string): number {
    const ranks = new Map<string, { ready: number; size: number }>()
    for (const { load, phase } of world.farm.living) {
      if (load.model.name !== model) continue
      const group = ranks.get(load.group) ?? { ready: 0, size: load.stage.count }
      if (phase === 'ready') group.ready += 1
      ranks.set(load.group, group)
    }
    return [...ranks.values()].filter(({ ready, size }) => ready === size).length
  }

  function checkReady(deployment: WantedDeployment): void {
    const count = deployment.replicas + (deployment.standby ? 1 : 0)
    const { name } = deployment.model
    const lacks = readyGroups(name) < count && fits(deployment)
    if (!lacks || isHeldBack(deployment)) {
      lackingSinceMs.delete(name)
      verdict.check('L2', true, () => '')
      return
    }
    const since = lackingSinceMs.get(name) ?? world.nowMs
    lackingSinceMs.set(name, since)
    const allowedMs = readyMsMax + loadMsOf(deployment.model.parameters * 4 + 3e9)
    verdict.check(
      'L2',
      world.nowMs - since <= allowedMs,
      () =>
        `${name} has ${readyGroups(name)} of ${count} groups, though it has fitted for ${world.nowMs - since} ms; ${coordinatorSays(deployment)}`,
    )
  }

  function coordinatorSays(deployment: WantedDeployment): string {
    const leader = world.hosts.find((host) => host.life?.machine.state.term != null)
    const state = leader?.life?.machine.state
    if (leader === undefined || state === undefined) return 'nobody coordinates'
    const preview = { group: groupId('preview'), deployment, machines: candidateRecords(state) }
    const placed = placeDeployment({ ...preview, taken: [] })
    const why = placed.kind === 'refused' ? placed.reason : 'there is a place'
    return `${nameOf(leader)} says: ${why}`
  }

  /** Whether there is room for another group right now, by what machines have really promised. */
  function fits(deployment: WantedDeployment): boolean {
    const counts = deployment.layers.length > 1 ? deployment.layers : [deployment.model.layers]
    const versions = new Set(world.hosts.map((host) => host.version))
    return [...versions].some((version) => {
      const used = new Set<SimHost>()
      for (const count of counts) {
        const share = count / deployment.model.layers
        const host = world.hosts.find(
          (other) =>
            other.version === version && !used.has(other) && hasRoom(other, deployment, share),
        )
        if (host === undefined) return false
        used.add(host)
      }
      return true
    })
  }

  function hasRoom(host: SimHost, deployment: WantedDeployment, share: number): boolean {
    const state = host.life?.machine.state
    if (state === undefined) return false
    const record = ownRecord(state)
    if (record.role === 'client' || !record.accepts.ok) return false
    if (!record.models.some((model) => model.digest === deployment.model.digest)) return false
    const freeBytes = record.memoryLendBytes - reservedBytes(record.holdings)
    return freeBytes >= memoryForShare(deployment, record, share).leastBytes
  }

  /** Failures of its own hold it back for a while; that is as designed. */
  function isHeldBack(deployment: WantedDeployment): boolean {
    return world.hosts.some((host) => {
      const state = host.life?.machine.state
      if (state === undefined || state.term === null) return false
      const failures = recentFailures(state, host.monotonicMs)
      return readinessOf(deployment, failures, host.monotonicMs).kind !== 'start-now'
    })
  }

  function checkRestarts(deployment: WantedDeployment): void {
    const count = deployment.replicas + (deployment.standby ? 1 : 0)
    const started = startedAfter.get(deployment.model.name)?.size ?? 0
    verdict.check(
      'L4',
      started <= count,
      () =>
        `${deployment.model.name} wants ${count} groups and was started ${started} times after the last fault`,
    )
    const ready = readyGroups(deployment.model.name)
    verdict.check(
      'L4',
      ready <= count,
      () => `${deployment.model.name} wants ${count} groups and has ${ready}`,
    )
  }

  function checkLeftovers(): void {
    const names = new Set(wanted().map((deployment) => deployment.model.name))
    for (const rank of world.farm.living) {
      verdict.check(
        'L4',
        names.has(rank.load.model.name),
        () =>
          `a rank of ${rank.load.model.name} is left on ${nameOf(rank.host)}, and nobody wants it`,
      )
      const isWhole = world.farm.ofGroup(rank.load.group).length === rank.load.stage.count
      verdict.check('L4', isWhole, () => `half of group ${rank.load.group} is left`)
    }
    for (const host of world.hosts) {
      for (const holding of host.life?.machine.state.holdings.values() ?? []) {
        const ageMs = host.monotonicMs - holding.sinceMs
        const isUndead = holding.state === 'stopping' && ageMs > undeadMsMax
        verdict.check(
          'L4',
          !isUndead,
          () => `${nameOf(host)} has been stopping ${holding.plan.group} for ${ageMs} ms`,
        )
        const isStale = holding.state === 'reserved' && ageMs > limits.reservationMsMax + 1000
        verdict.check('L4', !isStale, () => `${nameOf(host)} still reserves ${holding.plan.group}`)
      }
    }
  }

  function checkGhosts(): void {
    for (const host of world.hosts) {
      const state = host.life?.machine.state
      if (state === undefined || !host.isRunning) continue
      for (const peer of state.peers.values()) {
        if (roster(state.registers).has(peer.id)) continue
        const silentMs = host.monotonicMs - peer.heardMs
        verdict.check(
          'L5',
          silentMs <= ghostMsMax,
          () =>
            `${nameOf(host)} still knows ${peer.id.slice(0, 8)}, silent for ${silentMs} ms and not in its roster`,
        )
      }
    }
  }
}
