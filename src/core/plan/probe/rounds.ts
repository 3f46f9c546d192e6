// What a probe of a cluster consists of, in order: every machine alone, a hop for every pair, and the collectives
// of every pair and of all together, over a TCP ring and, where every check passes, over JACCL as well.
import {
  type LaunchMachine,
  type LaunchWorld,
  launchWorld,
  needsFacts,
} from '../../launch/world.ts'
import type { MachineFacts } from '../../machine-facts/machine.ts'

export type ProbedWorld = Extract<LaunchWorld, { kind: 'ring' | 'jaccl' }>

export interface ProbeRounds {
  readonly machines: readonly string[]
  readonly hops: readonly (readonly [string, string])[]
  readonly worlds: readonly ProbedWorld[]
  /** What is left out, and why. */
  readonly skipped: readonly string[]
}

/** Each pair takes seconds: with more machines than these make, only the first pairs are measured. */
const pairsMax = 45
/** Larger worlds are rare, and JACCL's mesh ends here. */
const worldRanksMax = 8

export function probeRounds(asked: {
  readonly machines: readonly LaunchMachine[]
  readonly facts: readonly MachineFacts[]
  /** Machines that hold a JACCL world already. */
  readonly busyMachines: readonly string[]
  /** Chips do not change with a cable: links alone take a fraction of the time. */
  readonly linksOnly: boolean
}): ProbeRounds {
  const { machines } = asked
  const all = machines.flatMap((a, index) => machines.slice(index + 1).map((b) => [a, b] as const))
  const pairs = all.slice(0, pairsMax)
  const sets: (readonly LaunchMachine[])[] = [...pairs]
  if (machines.length > 2 && machines.length <= worldRanksMax) sets.push(machines)
  const worlds: ProbedWorld[] = []
  const skipped: string[] = []
  if (all.length > pairs.length)
    skipped.push(
      `${all.length - pairs.length} of ${all.length} pairs: that many would take too long`,
    )
  for (const members of sets) {
    const found = worldsOf(members, asked)
    worlds.push(...found.worlds)
    if (found.notJaccl !== null)
      skipped.push(`JACCL of ${members.map(({ name }) => name).join(' and ')}: ${found.notJaccl}`)
  }
  return {
    machines: asked.linksOnly ? [] : machines.map(({ name }) => name),
    hops: pairs.map(([a, b]) => [a.name, b.name]),
    worlds,
    skipped,
  }
}

function worldsOf(
  members: readonly LaunchMachine[],
  asked: { readonly facts: readonly MachineFacts[]; readonly busyMachines: readonly string[] },
): { readonly worlds: readonly ProbedWorld[]; readonly notJaccl: string | null } {
  const couldBeJaccl = needsFacts('auto', members)
  const facts = members.flatMap(({ name }) => asked.facts.find((one) => one.name === name) ?? [])
  const best = launchWorld({
    backend: 'auto',
    machines: members,
    facts: couldBeJaccl ? facts : null,
    busyMachines: asked.busyMachines,
  })
  // "auto" refuses nothing and needs two machines, which they are.
  const order = best.kind === 'refused' ? members.map(({ name }) => name) : best.order
  const ring: ProbedWorld = { kind: 'ring', order, why: 'every world can be a ring' }
  if (best.kind === 'jaccl') return { worlds: [ring, best], notJaccl: null }
  return {
    worlds: [ring],
    notJaccl: couldBeJaccl && best.kind === 'ring' ? best.why.replace(/^.*?not JACCL: /, '') : null,
  }
}
