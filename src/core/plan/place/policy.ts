// What "best" means. Every goal gives one number, larger is better; ties go to fewer machines.
import { assertNever } from '../../assert.ts'
import type { PlanGoal } from '../types.ts'

export interface Scored {
  readonly answerSeconds: number
  readonly loadedRate: number
  readonly aloneRate: number
  readonly contextTokensLongest: number
  readonly tokensPerJoule: number
  readonly lossesSurvived: number
  readonly lossGapSeconds: number
  readonly machineCount: number
}

/** Which quick figure the search may keep candidates by, before the slow ones are computed. */
export function quickScore(
  goal: PlanGoal,
  scored: Pick<Scored, 'answerSeconds' | 'loadedRate'>,
): number {
  return goal === 'throughput' ? scored.loadedRate : 1 / scored.answerSeconds
}

/** Compares under a goal: negative when `a` is the better plan. */
export function compareScored(goal: PlanGoal, a: Scored, b: Scored): number {
  for (const key of keysOf(goal)) {
    const left = key(a)
    const right = key(b)
    if (Math.abs(left - right) > 1e-9 * Math.max(Math.abs(left), Math.abs(right)))
      return right - left
  }
  return a.machineCount - b.machineCount
}

type Key = (scored: Scored) => number

const fastest: Key = (scored) => 1 / scored.answerSeconds
const throughput: Key = (scored) => scored.loadedRate

function keysOf(goal: PlanGoal): readonly Key[] {
  switch (goal) {
    case 'fastest':
      return [fastest, throughput]
    case 'throughput':
      return [throughput, fastest]
    case 'context':
      return [(scored) => scored.contextTokensLongest, fastest]
    case 'power':
      return [(scored) => scored.tokensPerJoule, fastest]
    case 'survive':
      return [
        (scored) => scored.lossesSurvived,
        (scored) => 1 / (1 + scored.lossGapSeconds),
        fastest,
      ]
    default:
      return assertNever(goal)
  }
}
