// What a link and a world of ranks cost: a hop from stage to stage, an all-reduce of a given size.
import type { Constants } from './constants.ts'

export type LinkClass = 'rdma' | 'thunderbolt-ip' | 'ethernet' | 'wifi'

/** Whether RDMA collectives meet the GPU quickly or pay full fences: seen in use, not in settings. */
export type CollectiveRegime = 'fast' | 'slow'

export interface LinkFigures {
  readonly class: LinkClass
  readonly bytesPerSecond: number
  /** Time of one small message, beyond what the hop constants hold. */
  readonly latencySeconds: number
  /** Measured on this cluster, stage to stage. */
  readonly hopSeconds?: number
  /** The figures come from the link itself, not from its class alone. */
  readonly measured?: { readonly nominalBytesPerSecond: number | null; readonly ageMs: number }
}

/** A world measured by a probe, with the GPU in the loop. */
export interface WorldMeasurement {
  readonly smallSeconds: number
  readonly mebibyteSeconds: number
}

/** A link class as the table has it. */
export interface LinkEntry {
  readonly key: string
  readonly class: LinkClass
  readonly bytesPerSecond: number
  /** One way, small message: what such a link usually takes. */
  readonly typicalLatencySeconds: number
  /** What of it comes on top of the wired links that the hop constants were fitted on. */
  readonly extraLatencySeconds: number
  /** What the port says it does, where it says anything. */
  readonly nominalGbps?: number | undefined
}

/** A link of a class, with what was measured on it in place of the table's figures. */
export function linkFigures(
  entry: LinkEntry,
  measured: {
    readonly bytesPerSecond?: number | undefined
    readonly latencySeconds?: number | undefined
    readonly hopSeconds?: number | undefined
  } = {},
): LinkFigures {
  const slower =
    measured.latencySeconds === undefined
      ? 0
      : Math.max(0, measured.latencySeconds - entry.typicalLatencySeconds)
  return {
    class: entry.class,
    bytesPerSecond: measured.bytesPerSecond ?? entry.bytesPerSecond,
    latencySeconds: entry.extraLatencySeconds + slower,
    ...(measured.hopSeconds === undefined ? {} : { hopSeconds: measured.hopSeconds }),
  }
}

export type AllReduceTransport = 'mesh' | 'ring' | 'tcp-ring'

export interface AllReduceModel {
  readonly latencySeconds: number
  readonly secondsPerByte: number
  readonly measured: boolean
}

const mebibyte = 1024 * 1024

/** A hop of `bytes` over the link; the constant holds evaluating, waking and continuing. */
export function hopSeconds(link: LinkFigures, bytes: number, constants: Constants): number {
  const wire = bytes / link.bytesPerSecond
  if (link.hopSeconds !== undefined) return link.hopSeconds + wire
  const base = link.class === 'rdma' ? constants.hopRdma : constants.hopTcp
  return base + link.latencySeconds + wire
}

/** Bytes on the busiest wire and bytes summed or copied by the CPU, per byte of the reduced array. */
function shares(transport: AllReduceTransport, ranks: number): { wire: number; copied: number } {
  // Two ranks exchange whole arrays. A mesh of more scatters to all peers at once, then gathers.
  if (transport === 'mesh')
    return ranks <= 2 ? { wire: 1, copied: 1 } : { wire: 2 / ranks, copied: 1 }
  return { wire: (2 * (ranks - 1)) / ranks, copied: 1 + (ranks - 2) / ranks }
}

export function allReduceModel(options: {
  readonly ranks: number
  readonly transport: AllReduceTransport
  readonly regime: CollectiveRegime
  readonly bytesPerSecond: number
  /** Of the slowest link, beyond what the constant holds; RDMA has none. */
  readonly latencySeconds?: number
  readonly constants: Constants
  readonly measurement?: WorldMeasurement | undefined
}): AllReduceModel {
  const { ranks, transport, regime, bytesPerSecond, constants, measurement } = options
  if (measurement !== undefined)
    return {
      latencySeconds: measurement.smallSeconds,
      secondsPerByte:
        Math.max(0, measurement.mebibyteSeconds - measurement.smallSeconds) / mebibyte,
      measured: true,
    }
  const base =
    transport === 'tcp-ring'
      ? constants.allReduceTcp
      : regime === 'fast'
        ? constants.allReduceFast
        : constants.allReduceSlow
  const { wire, copied } = shares(transport, ranks)
  return {
    latencySeconds:
      base * (ranks / 2) ** constants.allReduceGrowth +
      2 * (ranks - 1) * (options.latencySeconds ?? 0),
    secondsPerByte: wire / bytesPerSecond + copied / constants.collectiveCopyBytesPerSecond,
    measured: false,
  }
}
