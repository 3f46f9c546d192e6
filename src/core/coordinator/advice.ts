// Whether the planner must be asked before a group is placed. Its word counts for the machines, measurements and
// neighbours it was asked about: when one of these has changed it is asked again, and nothing waits for it long.
import type { AdviceQuestion } from '../cluster/advice.ts'
import type { WantedDeployment } from '../cluster/desired.ts'
import { type MachineRecord, reservedBytes } from '../cluster/record.ts'
import type { MachineState } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { candidateRecords } from './candidates.ts'

export type AdviceOutcome =
  /** With the newest word there is. */
  | { readonly kind: 'go'; readonly deployment: WantedDeployment }
  | { readonly kind: 'ask'; readonly question: AdviceQuestion }
  | { readonly kind: 'wait' }

export function adviceFor(
  state: MachineState,
  about: {
    readonly deployment: WantedDeployment
    readonly groups: number
    readonly avoid: readonly MachineId[]
    readonly nowMs: number
  },
): AdviceOutcome {
  const { deployment, groups, avoid, nowMs } = about
  if (!state.hasPlanner || !isOpen(deployment)) return { kind: 'go', deployment }
  const question = questionFor(state, { deployment, groups, avoid })
  const { basis } = question
  if (deployment.advice?.basis === basis) return { kind: 'go', deployment }
  const known = state.advice.get(deployment.id)
  if (known?.basis !== basis) return { kind: 'ask', question }
  if (known.advice !== null) {
    // An older plan whose machines are all there is worth more than "cannot tell".
    const keeps = known.advice.kind === 'unknown' && deployment.advice?.kind === 'planned'
    return { kind: 'go', deployment: keeps ? deployment : { ...deployment, advice: known.advice } }
  }
  if (nowMs - known.askedMs < limits.adviceWaitMsMax) return { kind: 'wait' }
  // What was said of other machines is better than nothing while all that it names are there.
  const advice =
    deployment.advice ?? ({ kind: 'unknown', why: 'it did not answer in time' } as const)
  return { kind: 'go', deployment: { ...deployment, advice } }
}

/** Whoever says how it is to be is not told otherwise. */
export function isOpen({
  strategy,
  layers,
}: Pick<WantedDeployment, 'strategy' | 'layers'>): boolean {
  return strategy === 'auto' && layers.length === 0
}

export function questionFor(
  state: MachineState,
  about: Omit<AdviceQuestion, 'basis' | 'deployment'> & { readonly deployment: WantedDeployment },
): AdviceQuestion {
  const { deployment, groups, avoid } = about
  const { id, model, machines, contextTokens } = deployment
  const there = candidateRecords(state)
    .filter((record) => record.role !== 'client' && record.accepts.ok)
    .filter((record) => machines.length === 0 || machines.includes(record.id))
    .map((record) => `${short(record.id)}:${freeGigabytes(record, deployment)}`)
  const parts = [
    short(model.digest),
    contextTokens,
    groups,
    there.sort().join('+'),
    [...new Set(avoid)].map(short).sort().join('+'),
    state.measuredMs,
  ]
  return { deployment: id, groups, avoid, basis: parts.join('/') }
}

const short = (id: string): string => id.slice(0, 8)

/** What this deployment may use there: its own groups make room for what replaces them. */
function freeGigabytes(record: MachineRecord, deployment: WantedDeployment): number {
  const others = record.holdings.filter(({ plan }) => plan.deployment !== deployment.id)
  return Math.floor((record.memoryLendBytes - reservedBytes(others)) / 1e9)
}
