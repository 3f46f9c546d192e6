// The links between machines as the planner wants them: what was measured on each in place of what its class
// usually does. What the probing transport itself cannot exceed is no news of a link.
import type { MachineId } from '../../ids.ts'
import type { LinkFact, LinkMeasure } from '../../links/link-fact.ts'
import { linkLimits } from '../../links/measured-link.ts'
import type { Link } from '../../topology/links.ts'
import { type LinkEntry, type LinkFigures, linkFigures } from '../cost/links.ts'
import type { PlanLink } from '../types.ts'

/** Links that differ by less than noise are alike, so that machines which nothing tells apart stay so. */
const significantDigits = 2
const latencyStepSeconds = 0.00005

export function planLinks(given: {
  readonly links: readonly Link[]
  readonly measured: readonly LinkFact[]
  readonly entries: readonly LinkEntry[]
  readonly idOf: ReadonlyMap<string, MachineId>
}): readonly PlanLink[] {
  return given.links.flatMap((link) => {
    const [source, target] = link.ends.map((end) => given.idOf.get(end.machine))
    const figures = figuresOf(link, { ...given, measure: measureOf(link, given.measured) })
    if (figures === null || source === undefined || target === undefined) return []
    return [
      { source, target, figures },
      { source: target, target: source, figures },
    ]
  })
}

function measureOf(link: Link, measured: readonly LinkFact[]): LinkMeasure | null {
  const found = measured.find(({ ends }) =>
    ends.every((end) =>
      link.ends.some((one) => one.machine === end.machine && one.interface === end.interface),
    ),
  )
  return found?.measured ?? null
}

/** Null for a class that the table does not have: no link to plan with. */
function figuresOf(
  link: Link,
  about: { readonly entries: readonly LinkEntry[]; readonly measure: LinkMeasure | null },
): LinkFigures | null {
  const nominal = link.gbps.known ? bytesOf(link.gbps.value) : null
  // The peers' transport runs over IP; what it reaches on a cable says little of RDMA on the same cable.
  const measure = link.class === 'rdma' || about.measure?.gbps == null ? null : about.measure
  const carried = measure?.gbps == null ? null : rounded(bytesOf(measure.gbps.slower))
  const entry = entryFor(link, about.entries, carried)
  if (entry === null) return null
  const usual = nominal === null ? entry.bytesPerSecond : Math.min(nominal, entry.bytesPerSecond)
  if (measure === null || carried === null) return linkFigures(entry, { bytesPerSecond: usual })
  return {
    ...linkFigures(entry, {
      bytesPerSecond: tellsOfTheLink(measure) ? carried : Math.max(usual, carried),
      latencySeconds: oneWaySeconds(measure),
    }),
    measured: { nominalBytesPerSecond: nominal, ageMs: measure.ageMs },
  }
}

/** Of several entries of a class the nearest in speed, as the port says or else as measured; the slowest where nobody knows. */
function entryFor(
  link: Link,
  entries: readonly LinkEntry[],
  carried: number | null,
): LinkEntry | null {
  const apart = (one: number, other: number): number => Math.abs(Math.log(one / other))
  const distance = ({ bytesPerSecond, nominalGbps }: LinkEntry): number => {
    if (link.gbps.known) return apart(nominalGbps ?? (bytesPerSecond * 8) / 1e9, link.gbps.value)
    return carried === null ? bytesPerSecond : apart(bytesPerSecond, carried)
  }
  const ofClass = entries.filter((one) => one.class === link.class)
  return ofClass.toSorted((a, b) => distance(a) - distance(b))[0] ?? null
}

/** Near what the transport reaches without a link, the measurement is only what the link carries at least. */
function tellsOfTheLink({ gbps, slow, transport }: LinkMeasure): boolean {
  if (gbps === null) return false
  return slow || (transport.gbps !== null && gbps.slower < transport.gbps * linkLimits.slowShare)
}

/** Half a round trip, less what our own software takes of it. */
function oneWaySeconds({ roundTripMicros, transport }: LinkMeasure): number | undefined {
  if (roundTripMicros === null) return undefined
  const micros = Math.max(0, roundTripMicros.median - (transport.roundTripMicros ?? 0))
  return Math.round(micros / 2e6 / latencyStepSeconds) * latencyStepSeconds
}

const bytesOf = (gbps: number): number => (gbps * 1e9) / 8
const rounded = (value: number): number => Number(value.toPrecision(significantDigits))
