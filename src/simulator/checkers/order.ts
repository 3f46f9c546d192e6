// S12: every rank of a group hears the head's work in the head's order: what a rank has heard is always a
// beginning of what the head decided, nothing twice, nothing left out.
import type { Checker, Scene } from './checker.ts'

export function orderChecker({ world }: Scene): Checker {
  /** What the head of each formation of a group decided, in order. */
  const decided = new Map<string, readonly string[]>()
  return {
    tasked(rank) {
      const { group } = rank.load
      if (rank.isHead) {
        decided.set(rank.bond.secret, rank.tasks)
        return
      }
      const at = rank.tasks.length - 1
      const due = decided.get(rank.bond.secret)?.[at]
      world.verdict.check(
        'S12',
        rank.tasks[at] === due,
        () =>
          `rank ${rank.load.stage.index} of ${group} heard "${rank.tasks[at]}", due was "${due}"`,
      )
    },
  }
}
