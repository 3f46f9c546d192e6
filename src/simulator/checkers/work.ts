// S5: no rank works on for an attempt that was given up, once it could hear of that.
// L3: no request waits while its gateway sees a group that could answer it.
import { deploymentIdFor } from '../../core/serving/catalogue.ts'
import { readyGroups } from '../../core/serving/routing.ts'
import type { Request } from '../people/clients.ts'
import type { SimRank } from '../rank.ts'
import { canTalk } from './calm.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

/** Seconds in which the word could have come that an attempt was given up. */
const cancelMsMax = 6000
const offerMsMax = 5000

export function workChecker({ world, clients }: Scene): Checker {
  const { verdict } = world
  const workedSinceMs = new Map<string, number>()
  const offeredSinceMs = new Map<Request, number>()
  return {
    second() {
      for (const rank of world.farm.living) checkWork(rank)
      for (const request of clients.open) checkOffer(request)
    },
  }

  function checkWork(rank: SimRank): void {
    for (const attempt of rank.attempts) {
      const key = `${rank.pid} ${attempt}`
      const gateway = gatewayOf(attempt)
      if (rank.isSpinning || gateway === null || !canHear(rank, gateway)) {
        workedSinceMs.delete(key)
        continue
      }
      const sinceMs = workedSinceMs.get(key) ?? world.nowMs
      workedSinceMs.set(key, sinceMs)
      verdict.check(
        'S5',
        world.nowMs - sinceMs <= cancelMsMax,
        () => `a rank on ${nameOf(rank.host)} has worked on ${attempt} for nobody`,
      )
    }
  }

  /** Who asked for an attempt that is no longer wanted; null while it is. */
  function gatewayOf(attempt: string): Request['host'] | null {
    const request = clients.anyOf(attempt)
    if (request === undefined) return null
    return clients.isSpeaker(request, attempt) ? null : request.host
  }

  function canHear(rank: SimRank, gateway: Request['host']): boolean {
    if (!rank.life.isAlive) return false
    return rank.host === gateway ? gateway.isRunning : canTalk(world, rank.host, gateway)
  }

  /** In the eyes of its own gateway, which is all that it can go by. */
  function checkOffer(request: Request): void {
    const { host, life, waitingSinceMs, model } = request
    const isOffered =
      waitingSinceMs !== null &&
      host.isRunning &&
      host.life === life &&
      readyGroups(life.machine.state, deploymentIdFor(model)).length > 0
    if (!isOffered) {
      offeredSinceMs.delete(request)
      return
    }
    const sinceMs = Math.max(offeredSinceMs.get(request) ?? world.nowMs, waitingSinceMs)
    offeredSinceMs.set(request, sinceMs)
    verdict.check(
      'L3',
      world.nowMs - sinceMs <= offerMsMax,
      () => `gen-${request.answer.number} waits though ${nameOf(host)} sees a group that is ready`,
    )
  }
}
