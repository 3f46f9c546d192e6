// S10: a rank that is told to end was unloaded by somebody, belongs to a plan that failed or is one too
// many, or has failed itself. The truth of each cause is looked up in the world, not in what machines say.
import {
  type WantedDeployment,
  isDeploymentRemoved,
  wantedDeployments,
} from '../../core/cluster/desired.ts'
import { type OwnHolding, holdingKey } from '../../core/cluster/state.ts'
import { stopReasons } from '../../core/coordinator/orders.ts'
import { isAsWished } from '../../core/coordinator/shapes.ts'
import type { SimHost } from '../host.ts'
import { rankNumber } from '../farm.ts'
import type { SimRank } from '../rank.ts'
import { isClean } from '../wire.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

/** What was so this long ago may still be somebody's knowledge. */
const memoryMs = 40_000

export function stopChecker(scene: Scene): Checker {
  const { world, operators } = scene
  const told = new Set<SimRank>()
  const readyRanks = new Map<string, Set<number>>()
  const endedMs = new Map<string, number>()
  const disturbedMs = new Map<SimHost, number>()
  const lately = (atMs: number | undefined): boolean =>
    atMs !== undefined && world.nowMs - atMs < memoryMs
  const replacements = replacementsIn(world, lately)

  function isTrue(rank: SimRank, { plan, stop, reformPlan }: OwnHolding): boolean {
    const { group, deployment } = plan
    const cause = stop?.cause ?? ''
    const members = plan.stages.flatMap((stage) => stage.ranks).map(({ machine }) => machine)
    const hosts = world.hosts.filter((host) => members.includes(host.spec.id))
    const wasWhole = readyRanks.get(group)?.size === members.length
    const isHurt =
      rank.isSpinning ||
      lately(endedMs.get(group)) ||
      hosts.some((host) => !host.isRunning || lately(disturbedMs.get(host))) ||
      world.farm.ofGroup(group).some((other) => other.isSpinning)
    if (cause === stopReasons.unloaded) return operators.unloaded.has(deployment)
    if (cause === stopReasons.surplus) return groupsLately(deployment) > 1 || wasReduced(deployment)
    if (cause === stopReasons.replaced)
      return everyWish(world, deployment).some((wanted) => !isAsWished(plan, wanted))
    if (cause === stopReasons.replacedRank) return replacements.has(rank)
    if (cause === stopReasons.rankLost) return members.length > 1
    // Such a start was never committed: it may give reservations back, and a rank that runs is none.
    if (cause === stopReasons.abandoned) return false
    // A group that lost a part may be put together again, and that may come to nothing.
    if (cause === stopReasons.late) return !wasWhole || reformPlan !== null || plan.formation > 0
    if (cause.startsWith('this machine slept')) return lately(disturbedMs.get(rank.host))
    if (cause.startsWith('this machine joined'))
      return operators.removedMs.size > 0 || operators.admissions > 0 || operators.departures > 0
    if (cause.startsWith('machine ')) return isHurt || isNetworkHurt()
    // Whatever a rank itself reported or did not report: it must really have been in trouble.
    const isCutOff = members.length > 1 && isNetworkHurt()
    return isHurt || isCutOff || rank.phase === 'loading' || rank.phase === 'connecting'
  }

  let networkHurtMs: number | undefined
  const isNetworkHurt = (): boolean => lately(networkHurtMs) || !isNetworkWell()
  const isNetworkWell = (): boolean =>
    world.network.wires.every((wire) => wire.isUp && wire.directions.every(isClean))
  const groupSeenMs = new Map<string, { deployment: string; atMs: number }>()
  function groupsLately(deployment: string): number {
    let count = 0
    for (const seen of groupSeenMs.values())
      if (seen.deployment === deployment && lately(seen.atMs)) count += 1
    return count
  }
  function wasReduced(deployment: string): boolean {
    return world.hosts.some((host) => {
      const registers = host.life?.machine.state.registers
      if (registers === undefined) return false
      if (isDeploymentRemoved(registers, deployment as never)) return true
      return wantedDeployments(registers).some((wanted) => wanted.id === deployment)
    })
  }
  return {
    becameReady({ load }) {
      readyRanks.set(load.group, (readyRanks.get(load.group) ?? new Set()).add(rankNumber(load)))
    },
    exited(rank) {
      endedMs.set(rank.load.group, world.nowMs)
      replacements.ended(rank)
    },
    stepped(_host, { before, after }) {
      if (before.holdings === after.holdings) return
      for (const { plan } of after.holdings.values())
        groupSeenMs.set(plan.group, { deployment: plan.deployment, atMs: world.nowMs })
    },
    signalled(rank) {
      if (told.has(rank) || !rank.life.isAlive) return
      told.add(rank)
      const key = holdingKey(rank.load.group as never, rankNumber(rank.load))
      const holding = rank.life.machine.state.holdings.get(key)
      world.verdict.check(
        'S10',
        holding !== undefined && isTrue(rank, holding),
        () =>
          `${key} on ${nameOf(rank.host)} was stopped because "${holding?.stop?.cause}", which is not so`,
      )
    },
    second() {
      for (const host of world.hosts) if (!host.isRunning) disturbedMs.set(host, world.nowMs)
      if (!isNetworkWell()) networkHurtMs = world.nowMs
    },
    booted(host) {
      disturbedMs.set(host, world.nowMs)
    },
  }
}

/** The deployment as each machine that runs wants it now. */
function everyWish(world: Scene['world'], deployment: string): readonly WantedDeployment[] {
  return world.hosts.flatMap((host) => {
    const registers = host.life?.machine.state.registers
    const all = registers === undefined ? [] : wantedDeployments(registers)
    return all.filter((wanted) => wanted.id === deployment)
  })
}

/** Whether a group was put together anew without a rank. Orders may be long on their way: what lived lately counts. */
function replacementsIn(
  world: Scene['world'],
  lately: (atMs: number) => boolean,
): { has(rank: SimRank): boolean; ended(rank: SimRank): void } {
  const endedIn = new Map<string, { readonly secret: string; readonly atMs: number }[]>()
  return {
    has({ load: { group }, bond: { secret } }) {
      const living = world.farm.ofGroup(group).map((other) => other.bond)
      const ended = (endedIn.get(group) ?? []).filter(({ atMs }) => lately(atMs))
      return [...living, ...ended].some((other) => other.secret !== secret)
    },
    ended({ load: { group }, bond: { secret } }) {
      endedIn.set(group, [...(endedIn.get(group) ?? []), { secret, atMs: world.nowMs }])
    },
  }
}
