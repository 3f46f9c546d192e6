// L1: once the faults are over, everybody follows one machine and that one alone acts.
// L5: whoever left is forgotten within a minute, faults or not.
import { roster } from '../../core/cluster/desired.ts'
import { settledCoordinator } from '../../core/membership/view.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

const coordinatorMsMax = 10_000
const ghostMsMax = 60_000
const turnMs = 1000

export function coordinationChecker({ world }: Scene): Checker {
  const { verdict } = world
  let healedMs: number | null = null
  const strangeSinceMs = new Map<string, number>()
  return {
    healed() {
      healedMs = world.nowMs
    },
    second() {
      checkGhosts()
      if (healedMs !== null && world.nowMs - healedMs > coordinatorMsMax) checkCoordinator()
    },
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

  function checkGhosts(): void {
    for (const host of world.hosts) {
      const state = host.life?.machine.state
      if (state === undefined || !host.isRunning) continue
      for (const peer of state.peers.values()) {
        if (roster(state.registers).has(peer.id)) {
          strangeSinceMs.delete(`${host.spec.index} ${host.lives} ${peer.id}`)
          continue
        }
        const key = `${host.spec.index} ${host.lives} ${peer.id}`
        const sinceMs = strangeSinceMs.get(key) ?? host.monotonicMs
        strangeSinceMs.set(key, sinceMs)
        // Long silent and only now taken out: it goes at the next turn.
        if (host.monotonicMs - sinceMs < turnMs) continue
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
