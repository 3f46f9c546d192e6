// Whether a cable carries RDMA, with everything that speaks against it. What could not be looked at is
// a doubt, and a doubt is not a yes.
import { isKnown, whyUnknown } from '../machine-facts/fact.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { thunderboltGeneration } from '../machine-facts/thunderbolt.ts'
import type { Cable, CableEnd } from './cables.ts'

export interface RdmaVerdict {
  readonly usable: boolean
  /** Things that are wrong. */
  readonly obstacles: readonly string[]
  /** Things that nobody could see. */
  readonly doubts: readonly string[]
}

export function rdmaVerdict(cable: Cable, machines: readonly MachineFacts[]): RdmaVerdict {
  const obstacles: string[] = []
  const doubts: string[] = []
  if (cable.via.length > 0)
    obstacles.push(`${cable.via.join(' and ')} sits between; RDMA needs one cable from Mac to Mac`)
  for (const end of cable.ends) {
    const facts = machines.find((one) => one.name === end.machine)
    if (facts === undefined) continue
    const found = judgeEnd(end, facts)
    obstacles.push(...found.obstacles)
    doubts.push(...found.doubts)
  }
  return { usable: obstacles.length === 0 && doubts.length === 0, obstacles, doubts }
}

function judgeEnd(
  end: CableEnd,
  facts: MachineFacts,
): { readonly obstacles: readonly string[]; readonly doubts: readonly string[] } {
  if (facts.thunderbolt.known) {
    const generation = thunderboltGeneration(facts.thunderbolt.value, facts.hardware.chip)
    if (isKnown(generation, 4))
      return { obstacles: [`${end.machine} has Thunderbolt 4, which carries no RDMA`], doubts: [] }
  }
  if (isKnown(facts.rdma.setting, 'disabled'))
    return { obstacles: [`RDMA is off on ${end.machine}`], doubts: [] }
  if (isKnown(end.rdmaOffered, false))
    return { obstacles: [`${end.machine} does not offer RDMA on this cable`], doubts: [] }
  if (!end.rdmaDevice.known)
    return end.rdmaDevice.why.kind === 'not-applicable'
      ? { obstacles: [end.rdmaDevice.why.detail], doubts: [] }
      : { obstacles: [], doubts: [`${end.machine}: ${end.rdmaDevice.why.detail}`] }
  if (isKnown(end.portState, 'active')) return { obstacles: [], doubts: [] }
  if (end.portState.known)
    return {
      obstacles: [`${end.rdmaDevice.value} of ${end.machine} is ${end.portState.value}`],
      doubts: [],
    }
  // Its state was not printed, but the peer sees it offered: that is how a live port looks from outside.
  if (isKnown(end.rdmaOffered, true)) return { obstacles: [], doubts: [] }
  return { obstacles: [], doubts: [`${end.machine}: ${whyUnknown(end.portState)}`] }
}
