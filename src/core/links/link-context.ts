// What the machines say of a link that is about to be judged by its measurement: its class, what its ports
// negotiated, what lies in between, and which other ways there are.
import { type Fact, unknown } from '../machine-facts/fact.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { Link } from '../topology/links.ts'
import { buildTopology } from '../topology/topology.ts'
import type { LinkContext } from './measured-link.ts'

export interface LinkEnds {
  readonly self: string
  readonly peer: string
  /** Interface on each side, as the operating system names it. */
  readonly local: string
  readonly remote: string
}

export function linkContext(
  machines: readonly MachineFacts[],
  ends: LinkEnds,
  ceilingGbps: number | null,
): LinkContext & { readonly isKnown: boolean } {
  const { self, peer, local, remote } = ends
  const between = buildTopology(machines).links.filter((link) =>
    link.ends.every((end) => end.machine === self || end.machine === peer),
  )
  const isEnd = (link: Link, machine: string, name: string): boolean =>
    link.ends.some((end) => end.machine === machine && end.interface === name)
  const found = between.find((link) => isEnd(link, self, local) && isEnd(link, peer, remote))
  return {
    isKnown: found !== undefined,
    // Only for the words of a likely cause, which needs a nominal figure first.
    class: found?.class ?? 'ethernet',
    nominalGbps:
      found?.gbps ?? unknown('not-printed', `nobody says what the link ${local}~${remote} is`),
    duplex: duplexOf(machines, { machine: self, name: local }),
    via: found?.via ?? [],
    ceilingGbps,
    otherGbps: between.flatMap((link) =>
      link !== found && link.gbps.known ? [{ class: link.class, gbps: link.gbps.value }] : [],
    ),
  }
}

function duplexOf(
  machines: readonly MachineFacts[],
  at: { readonly machine: string; readonly name: string },
): Fact<'full' | 'half'> {
  const facts = machines.find((one) => one.name === at.machine)
  const found =
    facts?.interfaces.known === true
      ? facts.interfaces.value.find((one) => one.name === at.name)
      : undefined
  return found?.duplex ?? unknown('not-printed', `${at.name} tells no duplex`)
}
