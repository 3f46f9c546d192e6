// S14: words of a machine outside the roster change nothing, and one taken out is shut out in 5 s.
import { roster } from '../../core/cluster/desired.ts'
import type { MachineState } from '../../core/cluster/state.ts'
import type { MachineId } from '../../core/ids.ts'
import type { StepSeen } from '../../runtime/machine.ts'
import type { SimHost } from '../host.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

const shutOutMsMax = 5000

export function strangerChecker({ world }: Scene): Checker {
  const { verdict } = world
  /** Since when a machine of the roster's past is still taken for alive. */
  const sinceMs = new Map<string, number>()
  /** Withdrawn admissions that each machine has known of. */
  const withdrawn = new Map<SimHost, Set<string>>()
  const listen = (host: SimHost, { input, before, after }: StepSeen): void => {
    if (input.kind !== 'heartbeat' && input.kind !== 'message') return
    const { from } = input
    if (from === host.spec.id || roster(before.registers).has(from)) return
    verdict.check(
      'S14',
      isUntouched(before, after, from),
      () =>
        `${nameOf(host)} listened to ${input.kind} of ${from.slice(0, 8)}, which is not in its roster`,
    )
  }
  /** An admission once withdrawn stays withdrawn: a machine comes back only by a new one. */
  const checkWithdrawn = (host: SimHost, { input, before, after }: StepSeen): void => {
    if (before.registers === after.registers) return
    if (input.kind === 'registers-replace') withdrawn.delete(host)
    const known = withdrawn.get(host) ?? new Set()
    withdrawn.set(host, known)
    for (const [key, { value }] of after.registers) {
      if (!key.startsWith('roster/')) continue
      if (value === undefined) known.add(key)
      else if (known.has(key))
        verdict.check('S14', false, () => `${nameOf(host)} lists ${key} again, which was withdrawn`)
    }
  }
  return {
    booted(host) {
      if (host.disk.isTampered) withdrawn.delete(host)
    },
    stepped(host, step) {
      listen(host, step)
      checkWithdrawn(host, step)
    },
    beatTaken: listen,
    second() {
      for (const host of world.hosts) {
        if (!host.isRunning || host.life === null) continue
        checkShutOut(host, host.life.machine.state)
      }
    },
  }
  function checkShutOut(host: SimHost, state: MachineState): void {
    for (const peer of state.peers.values()) {
      const key = `${host.spec.index} ${host.lives} ${peer.id}`
      if (peer.status === 'dead' || roster(state.registers).has(peer.id)) {
        sinceMs.delete(key)
        continue
      }
      // Time in which the machine itself stood still does not count.
      const since = sinceMs.get(key) ?? host.monotonicMs
      sinceMs.set(key, since)
      verdict.check(
        'S14',
        host.monotonicMs - since <= shutOutMsMax || world.nowMs - host.resumedMs <= shutOutMsMax,
        () =>
          `${nameOf(host)} still takes ${peer.id.slice(0, 8)} for ${peer.status} after its removal`,
      )
    }
  }
}

function isUntouched(before: MachineState, after: MachineState, from: MachineId): boolean {
  return (
    before.registers === after.registers &&
    before.peers.get(from) === after.peers.get(from) &&
    (before.epochSeen === after.epochSeen || after.epochSeen.machine !== from) &&
    [...after.holdings].every(
      ([key, { epoch, stop }]) =>
        (before.holdings.has(key) || epoch.machine !== from) && stop?.cause !== 'because',
    )
  )
}
