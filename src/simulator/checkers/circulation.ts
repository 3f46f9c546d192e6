// L6: who left or was removed is out on every machine that could hear of it for some seconds.
import type { SimHost } from '../host.ts'
import type { Withdrawal } from '../people/operators.ts'
import { canTalk } from './calm.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

/** The issue of a removal is five seconds; whoever has to call first and be refused needs a few more. */
const hearMsMax = 8000

export function circulationChecker({ world, operators }: Scene): Checker {
  /** For how long a machine could have heard of a withdrawal and still lists it. */
  const deafSinceMs = new Map<string, number>()
  return {
    second() {
      for (const [key, withdrawal] of operators.withdrawn)
        for (const host of world.hosts)
          if (host !== withdrawal.subject) check(host, key, withdrawal)
    },
  }

  function check(host: SimHost, key: string, withdrawal: Withdrawal): void {
    const since = `${host.spec.index} ${host.lives} ${key}`
    const isListed = listed(host, key)
    if (!isListed || !couldHear(host, key, withdrawal)) {
      deafSinceMs.delete(since)
      if (host.isRunning) world.verdict.check('L6', true, () => '')
      return
    }
    const sinceMs = deafSinceMs.get(since) ?? world.nowMs
    deafSinceMs.set(since, sinceMs)
    const deafMs = world.nowMs - sinceMs
    world.verdict.check(
      'L6',
      deafMs <= hearMsMax,
      () =>
        `${nameOf(host)} still lists ${nameOf(withdrawal.subject)} after ${deafMs} ms in which it could hear`,
    )
  }

  /** Somebody it trusts and can talk to knows: a fellow member, or the machine that left. */
  function couldHear(host: SimHost, key: string, withdrawal: Withdrawal): boolean {
    return world.hosts.some((other) => {
      if (other === host || !host.trusts(other.spec.id) || !canTalk(world, host, other))
        return false
      if (other === withdrawal.subject)
        return mustTell(host, withdrawal, operators.admitted.get(other) ?? 0)
      return other.trusts(host.spec.id) && knows(other, key)
    })
  }
}

function listed(host: SimHost, key: string): boolean {
  const registers = host.life?.machine.state.registers
  return host.isRunning && registers?.get(key)?.value !== undefined
}

function knows(host: SimHost, key: string): boolean {
  const register = host.life?.machine.state.registers.get(key)
  return register !== undefined && register.value === undefined
}

/**
 * A machine that left owes that word to those who were members when it went, and has it as long as it has its disk.
 * Invited again by somebody who had not heard it, it is in by that invitation, and adopts the cluster's word.
 */
function mustTell(host: SimHost, withdrawal: Withdrawal, admissionsNow: number): boolean {
  const { subject, isOwn, tampers, admissions } = withdrawal
  const wasMember = subject.disk.farewell?.members.has(host.spec.id) === true
  return isOwn && wasMember && subject.disk.tampers === tampers && admissionsNow === admissions
}
