// S3: ranks of one group run one plan of one model under one version, and no group id is used twice.
// S4: what is called ready lives and has answered, and requests go only to groups that were ready whole.
import { holdingKey } from '../../core/cluster/state.ts'
import type { SimHost } from '../host.ts'
import { rankNumber } from '../farm.ts'
import type { SimRank } from '../rank.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

interface GroupFacts {
  readonly plan: string
  readonly digest: string
  readonly secret: string
  readonly size: number
  readonly ready: Set<number>
}

/** News of a rank's end travels through a pipe. */
const pipeMs = 50

export function groupChecker({ world }: Scene): Checker {
  const { verdict, farm } = world
  const facts = new Map<string, GroupFacts>()
  const endedMs = new Map<string, number>()
  const keyOf = (rank: SimRank): string => `${rank.load.group}#${rankNumber(rank.load)}`
  return {
    launched(rank) {
      const { group, plan, model, secret, stage } = rank.load
      const known = facts.get(group)
      const { digest } = model
      if (known === undefined) {
        facts.set(group, { plan, digest, secret, size: stage.count, ready: new Set() })
        return
      }
      // A group that was put together anew has a new plan and a new secret, and both belong together.
      const isSame = known.digest === digest && (known.secret === secret) === (known.plan === plan)
      verdict.check('S3', isSame, () => `group ${group} has ranks of different plans or starts`)
      const twin = farm
        .ofGroup(group)
        .some(
          (other) =>
            other !== rank &&
            keyOf(other) === keyOf(rank) &&
            other.bond.secret === rank.bond.secret,
        )
      verdict.check('S3', !twin, () => `rank ${keyOf(rank)} lives twice`)
    },
    becameReady(rank) {
      const { group, model } = rank.load
      facts.get(group)?.ready.add(rankNumber(rank.load))
      const versions = new Set(
        farm.ofGroup(group).map((other) => other.life.machine.state.self.version),
      )
      verdict.check('S3', versions.size === 1, () => `group ${group} mixes ${[...versions].join()}`)
      verdict.check(
        'S13',
        !rank.host.brokenFiles.has(model.digest) || rank.loadedWhole,
        () => `rank ${keyOf(rank)} is ready on files that are not whole`,
      )
    },
    exited(rank) {
      endedMs.set(keyOf(rank), world.nowMs)
    },
    stepped(host, { before, after }) {
      if (before.holdings === after.holdings) return
      for (const [key, holding] of after.holdings) {
        if (holding.state !== 'ready' || before.holdings.get(key)?.state === 'ready') continue
        checkReady(host, key)
      }
    },
    attempted(host, { group }) {
      const known = facts.get(group)
      verdict.check(
        'S4',
        known !== undefined && known.ready.size === known.size,
        () =>
          `${nameOf(host)} asks group ${group}, of which ${known?.ready.size ?? 0} ranks were ever ready`,
      )
    },
    second() {
      for (const host of world.hosts) {
        if (!host.isRunning) continue
        for (const [key, { state }] of host.life?.machine.state.holdings ?? [])
          if (state === 'ready') checkReady(host, key)
      }
    },
  }
  function checkReady(host: SimHost, key: string): void {
    const [group = '', rank = '0'] = key.split('#')
    const found = farm.find(host, group, Number(rank))
    const newsMs = Math.max(endedMs.get(key) ?? -Infinity, host.resumedMs)
    const isFresh = world.nowMs - newsMs < pipeMs
    verdict.check(
      'S4',
      found?.phase === 'ready' || found?.phase === 'waiting' || isFresh,
      () =>
        `${nameOf(host)} calls ${holdingKey(group as never, Number(rank))} ready, it is ${found?.phase ?? 'gone'}`,
    )
  }
}
