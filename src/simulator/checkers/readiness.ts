// L2: once the faults are over, every deployment that fits is ready within its load time and a little more.
import type { WantedDeployment } from '../../core/cluster/desired.ts'
import { reservedBytes } from '../../core/cluster/record.ts'
import { ownRecord, recentFailures } from '../../core/cluster/state.ts'
import { readinessOf } from '../../core/coordinator/backoff.ts'
import { memoryForShare, placeDeployment } from '../../core/coordinator/placement.ts'
import { candidateRecords } from '../../core/coordinator/candidates.ts'
import { groupId } from '../../core/ids.ts'
import { loadMsOf } from '../farm.ts'
import type { SimHost } from '../host.ts'
import type { World } from '../world.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'
import { groupsWanted, readyGroups, wantedNow } from './quiet.ts'

const readyMsMax = 15_000
const startingPhases: ReadonlySet<string> = new Set(['loading', 'connecting'])

export function readinessChecker({ world }: Scene): Checker {
  const { verdict } = world
  let isHealed = false
  const lackingSinceMs = new Map<string, number>()
  return {
    healed() {
      isHealed = true
    },
    second() {
      if (isHealed) for (const deployment of wantedNow(world)) checkReady(deployment)
    },
  }

  function checkReady(deployment: WantedDeployment): void {
    const count = groupsWanted(deployment)
    const { name } = deployment.model
    const lacks = readyGroups(world, name) < count && fits(world, deployment)
    if (!lacks || isHeldBack(world, deployment)) {
      lackingSinceMs.delete(name)
      verdict.check('L2', true, () => '')
      return
    }
    const since = lackingSinceMs.get(name) ?? world.nowMs
    lackingSinceMs.set(name, since)
    const allowedMs = readyMsMax + loadMsMost(world, deployment)
    verdict.check(
      'L2',
      world.nowMs - since <= allowedMs,
      () =>
        `${name} has ${readyGroups(world, name)} of ${count} groups, though it has fitted for ${world.nowMs - since} ms; ${coordinatorSays(world, deployment)}`,
    )
  }
}

/** The load time of the largest rank it may have, or of one that began to load while its disk was slow. */
function loadMsMost(world: World, { model }: WantedDeployment): number {
  const loading = [...world.farm.living].filter(
    ({ load, phase }) => load.model.name === model.name && startingPhases.has(phase),
  )
  return Math.max(loadMsOf(model.parameters * 4 + 3e9), ...loading.map(({ loadMs }) => loadMs))
}

function coordinatorSays(world: World, deployment: WantedDeployment): string {
  const leader = world.hosts.find((host) => host.life?.machine.state.term != null)
  const state = leader?.life?.machine.state
  if (leader === undefined || state === undefined) return 'nobody coordinates'
  const preview = { group: groupId('preview'), deployment, machines: candidateRecords(state) }
  const placed = placeDeployment({ ...preview, taken: [] })
  const why = placed.kind === 'refused' ? placed.reason : 'there is a place'
  return `${nameOf(leader)} says: ${why}`
}

/** Whether there is room for another group right now, by what machines have really promised. */
function fits(world: World, deployment: WantedDeployment): boolean {
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
function isHeldBack(world: World, deployment: WantedDeployment): boolean {
  return world.hosts.some((host) => {
    const state = host.life?.machine.state
    if (state === undefined || state.term === null) return false
    const failures = recentFailures(state, host.monotonicMs)
    return readinessOf(deployment, failures, host.monotonicMs).kind !== 'start-now'
  })
}
