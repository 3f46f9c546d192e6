// Check 24: what links really carry, measured through the peers' own transport, beside what they promise.
import { type LinkFact, type LinkMeasure, causeBetween, formatGbps } from '../../links/link-fact.ts'
import type { Cable } from '../../topology/cables.ts'
import { formatDuration } from '../../units.ts'
import { type Check, type DoctorInput, type Observation, pass } from '../finding.ts'

export const measuredLinksCheck: Check = {
  id: 'measured-links',
  number: 24,
  title: 'links carry what they promise',
  cites: ['kb#2098'],
  // A detour by dock or by route explains a slow link, and has a better next step.
  after: ['peer-cabled', 'route'],
  examine: (input) =>
    input.links.map((link) => {
      const cable = cableOf(input, link)
      return { ...observe(link), ...(cable === undefined ? {} : { cable }) }
    }),
}

function cableOf(input: DoctorInput, link: LinkFact): Cable | undefined {
  return input.topology.cables.find((cable) =>
    link.ends.every((end) =>
      cable.ends.some(
        (one) =>
          one.machine === end.machine &&
          one.interface.known &&
          one.interface.value === end.interface,
      ),
    ),
  )
}

function observe({ ends, measured }: LinkFact): Observation {
  const [a, b] = ends
  const machines = [a.machine, b.machine]
  const link = `the link from ${a.machine} (${a.interface}) to ${b.machine} (${b.interface})`
  const again = `run "bushel links ${b.machine} --measure" on ${a.machine}`
  if (measured === null)
    return { machines, level: 'skip', evidence: `${link} has not been measured yet` }
  const ago = `measured ${formatDuration(measured.ageMs)} ago`
  if (measured.gbps === null)
    return {
      machines,
      level: 'unknown',
      evidence: `${link} could not be measured: ${measured.error ?? 'too few samples came through'}`,
      next: `To try it again ${again}.`,
    }
  const carries = `${link} carries ${formatGbps(measured.gbps.slower)}${promised(measured)}, ${ago}`
  if (!measured.slow) return pass(machines, carries)
  const cause = measured.likelyCause ?? 'the link itself'
  const step = measured.next ?? 'look at both ends of it'
  return {
    machines,
    level: 'warn',
    evidence: `${carries}; likely ${causeBetween(cause, { from: a.machine, to: b.machine })}`,
    next: `${step.charAt(0).toUpperCase()}${step.slice(1)}; then ${again} to see what has changed.`,
  }
}

/** The nominal figure, and what of it this probe could have reached. */
function promised({ nominalGbps, expectedGbps, slow }: LinkMeasure): string {
  if (nominalGbps === null) return ' (nobody says what it should)'
  const expected = slow && expectedGbps !== null ? `, ${formatGbps(expectedGbps)} expected` : ''
  return ` (${formatGbps(nominalGbps)} nominal${expected})`
}
