// Which backend the worlds of a placed group get: JACCL where every check passes, ring otherwise, and why. What
// the machines are made of is asked anew before such a start: cables and addresses change between two of them.
import { chooseBackend } from '../backends/choose-backend.ts'
import type { WantedDeployment } from '../cluster/desired.ts'
import type { GroupPlan, RankPlan, StagePlan } from '../cluster/group-plan.ts'
import type { KnownFacts } from '../cluster/known-facts.ts'
import type { MachineRecord } from '../cluster/record.ts'
import {
  type MachineState,
  type SeenFailure,
  liveRecords,
  recentFailures,
} from '../cluster/state.ts'
import { limits } from '../limits.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'

export type BackendOutcome =
  | { readonly kind: 'plan'; readonly plan: GroupPlan }
  /** It depends on what the machines are made of, and nobody has asked lately. */
  | { readonly kind: 'ask' }
  | { readonly kind: 'wait' }
  | { readonly kind: 'refused'; readonly reason: string }

export function chooseBackends(
  state: MachineState,
  about: { deployment: WantedDeployment; plan: GroupPlan; nowMs: number },
): BackendOutcome {
  const { deployment, plan, nowMs } = about
  const { backend, devices } = deployment
  const worlds = plan.stages.filter((stage) => stage.ranks.length > 1)
  if (worlds.length === 0) return { kind: 'plan', plan }
  if (devices !== undefined || (backend !== 'auto' && backend !== 'jaccl'))
    return { kind: 'plan', plan: withStages(plan, (stage) => asked(stage, backend)) }
  const records = liveRecords(state)
  const isMac = ({ machine }: RankPlan): boolean =>
    records.find(({ id }) => id === machine)?.platform.startsWith('darwin') === true
  if (worlds.every((stage) => stage.ranks.every(isMac))) {
    const patience = patienceFor(state.facts, nowMs)
    if (patience !== 'go') return { kind: patience }
  }
  const failures = recentFailures(state, nowMs).filter(
    (failure) => failure.deployment === deployment.id,
  )
  const refusals: string[] = []
  const chosen = withStages(plan, (stage) => {
    const choice = choose(stage, { state, records, plan, failures })
    if (choice.backend !== 'jaccl' && backend === 'jaccl') refusals.push(choice.why ?? '')
    return choice
  })
  const [refusal] = refusals
  if (refusal !== undefined) return { kind: 'refused', reason: `JACCL cannot be used: ${refusal}` }
  return { kind: 'plan', plan: chosen }
}

function withStages(plan: GroupPlan, change: (stage: StagePlan) => StagePlan): GroupPlan {
  const stages = plan.stages.map((stage) => (stage.ranks.length > 1 ? change(stage) : stage))
  return { ...plan, stages }
}

const asked = (stage: StagePlan, backend: string): StagePlan => ({
  ...stage,
  why: `${backend} was asked for`,
})

function patienceFor({ askedMs, learnedMs }: KnownFacts, nowMs: number): 'go' | 'ask' | 'wait' {
  if (askedMs <= learnedMs) return nowMs - learnedMs < limits.factsFreshMs ? 'go' : 'ask'
  if (nowMs - askedMs < limits.factsWaitMsMax) return 'wait'
  // Asked and not answered: a ring now is better than a question for ever.
  return nowMs - askedMs < limits.factsFreshMs ? 'go' : 'ask'
}

function choose(
  stage: StagePlan,
  about: {
    state: MachineState
    records: readonly MachineRecord[]
    plan: GroupPlan
    failures: readonly SeenFailure[]
  },
): StagePlan {
  const { state, records, failures } = about
  const { devices: _devices, ...plain } = stage
  const ring = (why: string): StagePlan => ({
    ...plain,
    backend: 'ring',
    why: shortened(why.startsWith('TCP') ? why : `TCP ring; not JACCL: ${why}`),
  })
  const members = stage.ranks.map((rank) => ({
    rank,
    record: records.find(({ id }) => id === rank.machine),
  }))
  const other = members.find(({ record }) => record?.platform.startsWith('darwin') !== true)
  if (other !== undefined) return ring(`${other.record?.name ?? 'a machine'} is no Mac`)
  const failed = failures.find(({ cause }) => /jaccl/i.test(cause))
  if (failed !== undefined) return ring(`it failed lately: ${failed.cause}`)
  const facts: MachineFacts[] = []
  for (const { record } of members) {
    const name = record?.name ?? ''
    const found = state.facts.machines.find((one) => one.name === name)
    const silence = state.facts.silent.find((one) => one.name === name)?.reason
    if (found === undefined)
      return ring(
        `${name} did not say what it is made of${silence === undefined ? '' : `: ${silence}`}`,
      )
    facts.push(found)
  }
  const choice = chooseBackend({
    machines: facts,
    busyMachines: busyMachines(about),
    rendezvous: { kind: 'port', port: 0 },
  })
  if (choice.kind !== 'jaccl' || choice.rendezvous.kind !== 'coordinator')
    return ring(choice.why.replace(/^not JACCL: /, ''))
  const rankOf = (name: string): readonly RankPlan[] =>
    members.filter(({ record }) => record?.name === name).map(({ rank }) => rank)
  return {
    ...plain,
    ranks: choice.order.flatMap(rankOf),
    backend: 'jaccl',
    devices: choice.matrix,
    meeting: choice.rendezvous.address,
    why: shortened(choice.why),
  }
}

/** A Mac's driver has room for one JACCL world; those of other groups, running or about to, count. */
function busyMachines(about: {
  state: MachineState
  records: readonly MachineRecord[]
  plan: GroupPlan
}): readonly string[] {
  const { state, records, plan } = about
  const running = records.flatMap(({ holdings }) => holdings.map((holding) => holding.plan))
  const starting = [...state.starts.values()].map((start) => start.plan)
  const busy = new Set(
    [...running, ...starting]
      .filter((other) => other.group !== plan.group)
      .flatMap((other) => other.stages.filter(({ backend }) => backend === 'jaccl'))
      .flatMap(({ ranks }) => ranks.map(({ machine }) => machine)),
  )
  return records.filter(({ id }) => busy.has(id)).map(({ name }) => name)
}

/** It travels with every record: the first reasons are enough. */
function shortened(text: string): string {
  return text.length <= whyCharsMax ? text : `${text.slice(0, whyCharsMax - 1)}…`
}

const whyCharsMax = 500
