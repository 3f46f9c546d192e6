// What checks are about: Macs, cables, and the ends of cables with all that is known about them.
import type { MachineFacts } from '../../machine-facts/machine.ts'
import type { NetworkInterface } from '../../machine-facts/network.ts'
import type { Cable, CableEnd } from '../../topology/cables.ts'
import type { DoctorInput } from '../finding.ts'

export function macs(input: DoctorInput): readonly MachineFacts[] {
  return input.machines.filter((facts) => facts.platform === 'macos')
}

export interface EndSubject {
  readonly cable: Cable
  readonly end: CableEnd
  readonly other: CableEnd
  readonly facts: MachineFacts
  /** The interface of this end, when both its name and its listing are known. */
  readonly interface: NetworkInterface | null
  readonly interfaceName: string | null
}

export function cableEnds(input: DoctorInput): readonly EndSubject[] {
  return input.topology.cables.flatMap((cable) =>
    cable.ends.flatMap((end, index) => {
      const facts = input.machines.find((one) => one.name === end.machine)
      const other = cable.ends[1 - index]
      if (facts === undefined || other === undefined) return []
      const interfaceName = end.interface.known ? end.interface.value : null
      const listed = facts.interfaces.known
        ? facts.interfaces.value.find((one) => one.name === interfaceName)
        : undefined
      return [{ cable, end, other, facts, interface: listed ?? null, interfaceName }]
    }),
  )
}

export function portText(end: CableEnd): string {
  return end.receptacle.known
    ? `port ${end.receptacle.value} of ${end.machine}`
    : `a port of ${end.machine}`
}
