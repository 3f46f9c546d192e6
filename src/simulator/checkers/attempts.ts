// S5–S8 below the client, by attempt. S4: a group that has lost a rank is not asked. S5, S7: an attempt ends
// once and says nothing afterwards; a refusal is final. S10: "unloaded" is said only of what was unloaded.
import type { AttemptId } from '../../core/ids.ts'
import { deploymentIdFor } from '../../core/serving/catalogue.ts'
import { isCalm } from './calm.ts'
import { type Checker, type Scene, nameOf } from './checker.ts'

/** A lost machine is known in three seconds; its word that a rank ended, in less. */
const lossKnownMsMax = 6000
const attemptsKept = 2000

export function attemptChecker({ world, clients, operators }: Scene): Checker {
  const { verdict } = world
  const over = new Map<AttemptId, string>()
  const refused = new Set<string>()
  const lostMs = new Map<string, number>()
  let calmSinceMs = 0

  const end = (attempt: AttemptId, how: string): void => {
    over.set(attempt, how)
    const [oldest] = over.keys()
    if (over.size > attemptsKept && oldest !== undefined) over.delete(oldest)
  }
  return {
    exited(rank) {
      const { group, stage } = rank.load
      // One of an earlier formation, whose place was taken long ago, is no loss.
      const isReplaced = world.farm
        .ofGroup(group)
        .some((other) => other !== rank && other.load.stage.index === stage.index)
      if (!isReplaced && !lostMs.has(group)) lostMs.set(group, world.nowMs)
    },
    becameReady({ load }) {
      // The place of the lost one is taken; a group is asked only when every place is.
      lostMs.delete(load.group)
    },
    attempted(host, { attempt, group }) {
      const sinceMs = Math.max(calmSinceMs, lostMs.get(group) ?? Infinity)
      verdict.check(
        'S4',
        world.nowMs - sinceMs <= lossKnownMsMax || sinceMs === Infinity,
        () => `${nameOf(host)} asks ${group}, which lost a rank ${world.nowMs - sinceMs} ms ago`,
      )
      verdict.check(
        'S7',
        !refused.has(attempt.split('.', 1)[0] ?? ''),
        () => `${attempt} was begun though the request had been refused`,
      )
    },
    attemptSpoke(attempt) {
      verdict.check(
        'S5',
        !over.has(attempt),
        () => `${attempt} was ${over.get(attempt)} and goes on speaking`,
      )
    },
    attemptEnded(attempt, how) {
      verdict.check(
        'S7',
        !over.has(attempt),
        () => `${attempt} was ${over.get(attempt)} and then ${how}`,
      )
      if (how === 'refused') refused.add(attempt.split('.', 1)[0] ?? '')
      end(attempt, how)
    },
    attemptCancelled: (attempt) => end(attempt, 'given up'),
    second() {
      if (!isCalm(world)) calmSinceMs = world.nowMs
    },
    ended() {
      for (const { failure, model, answer } of clients.requests) {
        if (failure !== 'model-unloaded') continue
        verdict.check(
          'S10',
          operators.unloaded.has(deploymentIdFor(model)),
          () => `gen-${answer.number} was told that ${model} is unloaded; nobody unloaded it`,
        )
      }
    },
  }
}
