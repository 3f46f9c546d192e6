// S9: a rank lives only while the agent of a living daemon keeps it; others are gone within five seconds.
import { holdingKey } from '../../core/cluster/state.ts'
import { rankNumber } from '../farm.ts'
import type { SimRank } from '../rank.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

const orphanMsMax = 5000

export function orphanChecker({ world }: Scene): Checker {
  const sinceMs = new Map<SimRank, number>()
  return {
    second() {
      for (const rank of world.farm.living) {
        const key = holdingKey(rank.load.group as never, rankNumber(rank.load))
        const isKept = rank.life.isAlive && rank.life.machine.state.holdings.has(key)
        if (isKept || rank.host.isAsleep) {
          sinceMs.delete(rank)
          continue
        }
        const since = sinceMs.get(rank) ?? world.nowMs
        sinceMs.set(rank, since)
        world.verdict.check(
          'S9',
          world.nowMs - since <= orphanMsMax,
          () =>
            `rank ${key} on ${nameOf(rank.host)} has had no agent for ${world.nowMs - since} ms`,
        )
      }
    },
    exited(rank) {
      sinceMs.delete(rank)
      world.verdict.check('S9', true, () => '')
    },
  }
}
