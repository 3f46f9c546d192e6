// When a deployment may be started again after its groups have failed.
import type { WantedDeployment } from '../cluster/desired.ts'
import type { Failure } from '../cluster/record.ts'
import type { HeldOff } from '../cluster/state.ts'
import { limits } from '../limits.ts'

export type Readiness =
  | { readonly kind: 'start-now' }
  | (LastFailure & { readonly kind: 'start-later'; readonly atMs: number })
  | (LastFailure & { readonly kind: 'degraded' })

export interface LastFailure {
  /** Groups that have failed. */
  readonly failures: number
  readonly cause: string
  /** What each rank of the last group said. */
  readonly of: readonly Failure[]
}

/** Groups that had worked restart at once; those that never did wait longer each time, then stop trying. */
export function readinessOf(
  deployment: WantedDeployment,
  failures: readonly Failure[],
  nowMs: number,
): Readiness {
  const own = failures.filter(
    (failure) =>
      failure.deployment === deployment.id && failure.wish === deployment.version.counter,
  )
  const held = new Map<string, Failure>()
  // A group of many ranks fails as one: its ranks follow each other down.
  for (const failure of own) if (!failure.excused) held.set(failure.group, failure)
  const counted = [...held.values()].sort((a, b) => a.atMs - b.atMs)
  const last = counted.at(-1)
  if (last === undefined) return { kind: 'start-now' }
  const about: LastFailure = {
    failures: counted.length,
    cause: last.cause,
    of: own.filter((failure) => failure.group === last.group),
  }
  if (counted.length >= limits.restartsMax) return { kind: 'degraded', ...about }
  const delayMs = Math.min(
    limits.restartBackoffMsMax,
    limits.restartBackoffMsMin * 2 ** (counted.length - 1),
  )
  const atMs = last.atMs + delayMs
  return nowMs >= atMs ? { kind: 'start-now' } : { kind: 'start-later', atMs, ...about }
}

/** How long a deployment waits after a start that was refused or given up: longer with each one in a row. */
export function holdOffAfter(last: HeldOff | undefined, nowMs: number): HeldOff {
  const leastMs = nowMs + limits.refusedHoldOffMs
  // Replicas that are refused together are one refusal.
  if (last !== undefined && last.untilMs > nowMs)
    return { ...last, untilMs: Math.max(last.untilMs, leastMs) }
  const isInRow = last !== undefined && nowMs - last.untilMs < limits.refusedInRowMs
  const refusals = isInRow ? last.refusals + 1 : 1
  const waitMs = limits.refusedHoldOffMs * 2 ** (refusals - 1)
  return { untilMs: nowMs + Math.min(limits.refusedHoldOffMsMax, waitMs), refusals }
}
