// A link between two machines of the cluster as it was last measured, whichever of them asks.
import type { LinkClass } from '../topology/links.ts'
import type { MeasuredLink } from './measured-link.ts'

export interface LinkFact {
  /** In the order of their names; "forward" is from the first to the second. */
  readonly ends: readonly [LinkFactEnd, LinkFactEnd]
  /** Null while nobody has measured it. */
  readonly measured: LinkMeasure | null
}

export interface LinkFactEnd {
  readonly machine: string
  readonly interface: string
}

export interface LinkMeasure extends MeasuredLink {
  /** Null when the machines do not say what lies between them. */
  readonly class: LinkClass | null
  readonly nominalGbps: number | null
  /** What the probing transport reaches on one machine without any link: beyond it a measurement says nothing. */
  readonly transport: { readonly gbps: number | null; readonly roundTripMicros: number | null }
  /** Why there is no figure. */
  readonly error: string | null
  readonly ageMs: number
}

/** A link as one of its machines sees it. */
export function linkFact(
  self: LinkFactEnd,
  peer: LinkFactEnd,
  measured: LinkMeasure | null,
): LinkFact {
  if (endText(self) <= endText(peer)) return { ends: [self, peer], measured }
  return { ends: [peer, self], measured: measured === null ? null : turnMeasure(measured) }
}

/** The same measurement from the other end of the link. */
export function turnMeasure<Measure extends Pick<MeasuredLink, 'gbps' | 'likelyCause'>>(
  measured: Measure,
): Measure {
  if (measured.gbps === null) return measured
  const { forward, backward, slower } = measured.gbps
  const likelyCause =
    measured.likelyCause?.replace(/\((forward|backward)\)/, (_, word: string) =>
      word === 'forward' ? '(backward)' : '(forward)',
    ) ?? null
  return { ...measured, gbps: { slower, forward: backward, backward: forward }, likelyCause }
}

/** Each link once, though both of its machines tell of it: as it was measured last. */
export function mergeLinkFacts(told: readonly LinkFact[]): readonly LinkFact[] {
  const merged = new Map<string, LinkFact>()
  for (const link of told) {
    const key = link.ends.map(endText).join(' ')
    const other = merged.get(key)
    if (other === undefined || isFresher(link.measured, other.measured)) merged.set(key, link)
  }
  return [...merged.values()]
}

const endText = (end: LinkFactEnd): string => `${end.machine}/${end.interface}`

function isFresher(a: LinkMeasure | null, b: LinkMeasure | null): boolean {
  if (a === null) return false
  return b === null || a.ageMs < b.ageMs
}

/** "10.0 Gb/s", "50 Mb/s". */
export function formatGbps(gbps: number): string {
  return gbps < 1 ? `${(gbps * 1000).toFixed(0)} Mb/s` : `${gbps.toFixed(1)} Gb/s`
}

/** A likely cause in which directions have names. */
export function causeBetween(
  cause: string,
  ends: { readonly from: string; readonly to: string },
): string {
  return cause
    .replace('(forward)', `(from ${ends.from} to ${ends.to})`)
    .replace('(backward)', `(from ${ends.to} to ${ends.from})`)
}
