// From samples of a link to figures that can be shown beside the nominal one, with a flag when it is slow
// and the likely reason. Taking the samples is the transport's business.
import type { Fact } from '../machine-facts/fact.ts'
import type { LinkClass } from '../topology/links.ts'

export interface LinkSamples {
  /** Round trips of a tiny message, in microseconds. */
  readonly roundTripMicros: readonly number[]
  /** Bulk transfers in each direction. */
  readonly forward: readonly Transfer[]
  readonly backward: readonly Transfer[]
}

export interface Transfer {
  readonly bytes: number
  readonly micros: number
}

/** What is known about the link beside the samples. */
export interface LinkContext {
  readonly class: LinkClass
  /** What the ports negotiated. */
  readonly nominalGbps: Fact<number>
  readonly duplex: Fact<'full' | 'half'>
  readonly via: readonly string[]
  /** What the probing transport reaches on this machine without a link, so that it is not blamed on one. */
  readonly ceilingGbps: number | null
  /** Nominal speeds of the other links between the same machines. */
  readonly otherGbps: readonly { readonly class: LinkClass; readonly gbps: number }[]
}

export interface MeasuredLink {
  readonly roundTripMicros: {
    readonly median: number
    readonly p99: number
    readonly samples: number
  } | null
  /** The slower of both directions, and each of them. */
  readonly gbps: {
    readonly slower: number
    readonly forward: number
    readonly backward: number
  } | null
  readonly expectedGbps: number | null
  readonly slow: boolean
  /** Why it is slow, as far as that can be told, and what to try. */
  readonly likelyCause: string | null
  readonly next: string | null
}

export const linkLimits = {
  /** Protocol headers and acknowledgements take their part of every link. */
  usableShare: 0.9,
  /** Below this part of what could be expected a link is called slow. */
  slowShare: 0.7,
  /** One direction this much slower than the other points at one of the machines. */
  skewShare: 0.5,
  /** A tail this much longer than the middle means that something else uses the link or the CPU. */
  jitterRatio: 20,
  /** A measured speed this close to another link's nominal one has probably taken that way. */
  matchShare: 0.15,
  transfersMin: 3,
  roundTripsMin: 10,
} as const

export function measureLink(samples: LinkSamples, context: LinkContext): MeasuredLink {
  const roundTripMicros = summarise(samples.roundTripMicros)
  const forward = bandwidth(samples.forward)
  const backward = bandwidth(samples.backward)
  const gbps =
    forward === null || backward === null
      ? null
      : { slower: Math.min(forward, backward), forward, backward }
  const expectedGbps = expected(context)
  const slow =
    gbps !== null && expectedGbps !== null && gbps.slower < expectedGbps * linkLimits.slowShare
  const found = slow && gbps !== null ? causeOf({ gbps, context, roundTripMicros }) : null
  return {
    roundTripMicros,
    gbps,
    expectedGbps,
    slow,
    likelyCause: found?.cause ?? null,
    next: found?.next ?? null,
  }
}

/** A link can carry its nominal speed less overhead, and a probe no more than its own ceiling. */
function expected(context: LinkContext): number | null {
  if (!context.nominalGbps.known) return null
  const usable = context.nominalGbps.value * linkLimits.usableShare
  return context.ceilingGbps === null ? usable : Math.min(usable, context.ceilingGbps)
}

function summarise(micros: readonly number[]): MeasuredLink['roundTripMicros'] {
  if (micros.length < linkLimits.roundTripsMin) return null
  const sorted = micros.toSorted((a, b) => a - b)
  return { median: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), samples: sorted.length }
}

/** The median over transfers: the first of them still warms up, and one may be disturbed. */
function bandwidth(transfers: readonly Transfer[]): number | null {
  const rates = transfers
    .filter((one) => one.micros > 0 && one.bytes > 0)
    .map((one) => (one.bytes * 8) / one.micros / 1000)
    .toSorted((a, b) => a - b)
  return rates.length < linkLimits.transfersMin ? null : quantile(rates, 0.5)
}

function quantile(sorted: readonly number[], share: number): number {
  const at = Math.min(sorted.length - 1, Math.floor(sorted.length * share))
  return sorted[at] ?? 0
}

interface Cause {
  readonly cause: string
  readonly next: string
}

function causeOf(seen: {
  readonly gbps: NonNullable<MeasuredLink['gbps']>
  readonly context: LinkContext
  readonly roundTripMicros: MeasuredLink['roundTripMicros']
}): Cause {
  const { context, gbps } = seen
  if (context.duplex.known && context.duplex.value === 'half')
    return {
      cause: 'the link runs half duplex',
      next: 'replace the cable and let both ends negotiate',
    }
  const taken = context.otherGbps.find(
    (other) =>
      Math.abs(gbps.slower - other.gbps * linkLimits.usableShare) <=
      other.gbps * linkLimits.matchShare,
  )
  if (taken !== undefined)
    return {
      cause: `the traffic takes the ${taken.class} link (${taken.gbps} Gb/s) instead`,
      next: 'look at the route to the other machine (check 13 on a Mac, "ip route get" on Linux)',
    }
  const faster = Math.max(gbps.forward, gbps.backward)
  if (gbps.slower < faster * linkLimits.skewShare)
    return {
      cause: `only one direction is slow (${gbps.forward < gbps.backward ? 'forward' : 'backward'})`,
      next: 'look at the load of the machine that receives',
    }
  if (context.via.length > 0)
    return {
      cause: `${context.via.join(' and ')} in between limits the link`,
      next: 'run a cable straight from one machine to the other',
    }
  if (context.class === 'wifi') return { cause: 'Wi-Fi shares the air', next: 'use a cable' }
  const { roundTripMicros: trips } = seen
  if (trips !== null && trips.p99 > trips.median * linkLimits.jitterRatio)
    return {
      cause: 'round trips vary widely, so something else uses the link or the CPU',
      next: 'look at what else runs on both machines',
    }
  return context.class === 'ethernet'
    ? { cause: 'the cable, the switch or a limit on the way', next: 'look at both ends of it' }
    : { cause: 'the cable or a limit on the way', next: 'try another Thunderbolt 5 cable' }
}
