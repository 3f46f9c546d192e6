// One sentence per plan: why it won, or what it lost by, in figures a person can check, with the findings of
// the knowledge base that carry the claim.
import { assertNever } from '../../assert.ts'
import { type Citation, citationText, findingIds } from '../../citation.ts'
import { formatBytes } from '../../units.ts'
import { type TermName, type Terms, termNames, totalSeconds } from '../cost/terms.ts'
import type { PlanGoal, PlacementPlan, RankedPlan, StrategyName } from '../types.ts'

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

/** Why a term is as large as it is. */
const termCites: Readonly<Record<TermName, readonly Citation[]>> = {
  weights: ['kb#2061'],
  cache: ['kb#2064'],
  scores: ['kb#2064'],
  launches: ['kb#2054'],
  matmul: [],
  collectives: ['kb#2003'],
  wire: ['kb#2001'],
  hops: ['kb#2060'],
  engine: [],
}

/** What is known of a way to divide a model, when it is chosen. */
const strategyCites: Readonly<Record<StrategyName, readonly Citation[]>> = {
  single: ['kb#2057'],
  pipeline: ['kb#1040'],
  tensor: ['kb#422'],
  'uneven-tensor': ['kb#2087'],
  expert: ['kb#2086'],
  'tensor-pipeline': ['kb#366'],
  replicas: ['kb#429'],
}

/** The sentence and what it rests on. */
export interface Explanation {
  readonly why: string
  readonly kbFindings: readonly number[]
}

type Unexplained = Omit<RankedPlan, keyof Explanation>

function explained(why: string, cites: readonly Citation[]): Explanation {
  const kbFindings = [...new Set(findingIds(cites))]
  return { why: kbFindings.length === 0 ? why : `${why} (${citationText(kbFindings)})`, kbFindings }
}

const strategyOf = ({ strategy }: PlacementPlan): readonly Citation[] => strategyCites[strategy]

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

function goalFigure(goal: PlanGoal, plan: Unexplained): string {
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

function machineCount(plan: Unexplained): number {
  return plan.placement.groups.reduce(
    (sum, group) => sum + group.stages.reduce((ranks, stage) => ranks + stage.ranks.length, 0),
    0,
  )
}

export function explainWinner(goal: PlanGoal, plan: Unexplained): Explanation {
  const { name, share } = largestTerm(plan.figures.decodeTerms)
  const on = machineCount(plan)
  return explained(
    `best for this goal: ${goalFigure(goal, plan)} on ${on} machine${on === 1 ? '' : 's'}; ${Math.round(share * 100)}% of a token is ${termWords[name]}`,
    [...termCites[name], ...strategyOf(plan.placement)],
  )
}

/** What a plan lost by, against the chosen one. */
export function explainLoser(
  goal: PlanGoal,
  plan: Unexplained,
  winner: Unexplained | null,
): Explanation {
  if (winner === null) return explained(goalFigure(goal, plan), strategyOf(plan.placement))
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
  if (name === null || extra < 0.02 * totalSeconds(best)) return explained(against, [])
  return explained(
    `${against}: ${termWords[name]} takes ${(extra * 1000).toFixed(1)} ms more per token`,
    termCites[name],
  )
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
