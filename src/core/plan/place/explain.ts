// One sentence per plan: why it won, or what it lost by, in figures a person can check.
import { assertNever } from '../../assert.ts'
import { formatBytes } from '../../units.ts'
import { type TermName, type Terms, termNames, totalSeconds } from '../cost/terms.ts'
import type { PlanGoal, RankedPlan } from '../types.ts'

const termWords: Readonly<Record<TermName, string>> = {
  weights: 'reading weights',
  cache: 'reading the cache',
  scores: 'attention arithmetic',
  launches: 'launching kernels',
  matmul: 'matrix arithmetic',
  collectives: 'ranks waiting for each other',
  wire: 'collectives on the wire',
  hops: 'hops between stages',
  engine: 'the engine',
}

function largestTerm(terms: Terms): { name: TermName; share: number } {
  let name: TermName = 'weights'
  for (const candidate of termNames) if (terms[candidate] > terms[name]) name = candidate
  return { name, share: terms[name] / totalSeconds(terms) }
}

const rate = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
const seconds = (value: number): string =>
  value >= 10
    ? `${value.toFixed(0)} s`
    : value >= 1
      ? `${value.toFixed(1)} s`
      : `${(value * 1000).toFixed(0)} ms`

function goalFigure(goal: PlanGoal, plan: Omit<RankedPlan, 'why'>): string {
  const { figures } = plan
  switch (goal) {
    case 'fastest':
      return `${rate(figures.tokensPerSecondAlone.value)} tok/s after ${seconds(figures.firstTokenSeconds.value)}`
    case 'throughput':
      return `${rate(figures.tokensPerSecondLoaded.value)} tok/s in all`
    case 'context':
      return `${figures.contextTokensLongest} tokens of context`
    case 'power':
      return `${figures.tokensPerJoule.toFixed(3)} tokens per joule at ${figures.watts.toFixed(0)} W`
    case 'survive': {
      const survived = figures.losses.filter((loss) => loss.survives).length
      return `${survived} of ${figures.losses.length} single losses survived`
    }
    default:
      return assertNever(goal)
  }
}

function machineCount(plan: Omit<RankedPlan, 'why'>): number {
  return plan.placement.groups.reduce(
    (sum, group) => sum + group.stages.reduce((ranks, stage) => ranks + stage.ranks.length, 0),
    0,
  )
}

export function explainWinner(goal: PlanGoal, plan: Omit<RankedPlan, 'why'>): string {
  const { name, share } = largestTerm(plan.figures.decodeTerms)
  const on = machineCount(plan)
  return `best for this goal: ${goalFigure(goal, plan)} on ${on} machine${on === 1 ? '' : 's'}; ${Math.round(share * 100)}% of a token is ${termWords[name]}`
}

/** What a plan lost by, against the chosen one. */
export function explainLoser(
  goal: PlanGoal,
  plan: Omit<RankedPlan, 'why'>,
  winner: Omit<RankedPlan, 'why'> | null,
): string {
  if (winner === null) return goalFigure(goal, plan)
  const own = plan.figures.decodeTerms
  const best = winner.figures.decodeTerms
  let name: TermName | null = null
  let extra = 0
  for (const candidate of termNames)
    if (own[candidate] - best[candidate] > extra) {
      name = candidate
      extra = own[candidate] - best[candidate]
    }
  const against = `${goalFigure(goal, plan)} against ${goalFigure(goal, winner)}`
  const cost =
    name === null || extra < 0.02 * totalSeconds(best)
      ? ''
      : `: ${termWords[name]} takes ${(extra * 1000).toFixed(1)} ms more per token`
  return `${against}${cost}`
}

export function explainShortage(options: {
  readonly model: string
  readonly format: string
  readonly neededBytes: number
  readonly freeBytes: number
}): string {
  const missing = options.neededBytes - options.freeBytes
  return `${options.model} (${options.format}) needs ${formatBytes(options.neededBytes)} and the machines have ${formatBytes(options.freeBytes)} to give: ${formatBytes(missing)} are missing`
}
