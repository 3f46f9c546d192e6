// L3: every request ends. L4: after the last fault nothing is restarted twice, and nothing is left over.
import type { WantedDeployment } from '../../core/cluster/desired.ts'
import { holdingKey } from '../../core/cluster/state.ts'
import { limits } from '../../core/limits.ts'
import { rankNumber } from '../farm.ts'
import type { SimRank } from '../rank.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'
import { groupsWanted, readyGroups, wantedNow } from './quiet.ts'

/** Nothing refuses to die any more; what was told to has gone. */
const undeadMsMax = 30_000
/** Long enough for any answer of a group that is there. */
const answerMsMax = 60_000

export function restChecker({ world, clients }: Scene): Checker {
  const { verdict } = world
  let isHealed = false
  const startedAfter = new Map<string, Set<string>>()
  return {
    healed() {
      isHealed = true
    },
    launched({ load }) {
      if (!isHealed) return
      const started = startedAfter.get(load.model.name) ?? new Set()
      startedAfter.set(load.model.name, started.add(load.group))
    },
    ended() {
      checkRequests()
      for (const deployment of wantedNow(world)) checkRestarts(deployment)
      checkRanks()
      checkHoldings()
    },
  }

  function checkRequests(): void {
    for (const request of clients.requests) {
      const openMs = world.nowMs - request.beganMs
      const isLate = request.outcome === 'open' && openMs > answerMsMax
      verdict.check(
        'L3',
        !isLate || readyGroups(world, request.model) === 0,
        () =>
          `gen-${request.answer.number} on ${nameOf(request.host)} has been open for ${openMs} ms`,
      )
    }
  }

  function checkRestarts(deployment: WantedDeployment): void {
    const count = groupsWanted(deployment)
    const started = startedAfter.get(deployment.model.name)?.size ?? 0
    verdict.check(
      'L4',
      started <= count,
      () =>
        `${deployment.model.name} wants ${count} groups and was started ${started} times after the last fault`,
    )
    const ready = readyGroups(world, deployment.model.name)
    verdict.check(
      'L4',
      ready <= count,
      () => `${deployment.model.name} wants ${count} groups and has ${ready}`,
    )
  }

  function checkRanks(): void {
    const names = new Set(wantedNow(world).map((deployment) => deployment.model.name))
    for (const rank of world.farm.living) {
      verdict.check(
        'L4',
        names.has(rank.load.model.name),
        () =>
          `a rank of ${rank.load.model.name} is left on ${nameOf(rank.host)}, and nobody wants it`,
      )
      const isWhole = world.farm.ofGroup(rank.load.group).length === rank.load.stage.count
      verdict.check(
        'L4',
        isWhole || isGoing(rank),
        () => `half of group ${rank.load.group} is left`,
      )
    }
  }

  /** A fault that only work shows may show late: what was told to end a moment ago has not had its time yet. */
  function isGoing({ host, load }: SimRank): boolean {
    const key = holdingKey(load.group as never, rankNumber(load))
    const holding = host.life?.machine.state.holdings.get(key)
    return holding?.state === 'stopping' && host.monotonicMs - holding.sinceMs <= undeadMsMax
  }

  function checkHoldings(): void {
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
}
