// What a machine can do, in the units the cost model asks for: from its chip's entry in the table,
// with measured figures in place of the table's wherever the cluster has been probed.
import type { Constants } from './constants.ts'

/** One entry of the chip table: specifications, no opinions. */
export interface ChipFigures {
  readonly key: string
  readonly name: string
  readonly kind: 'apple' | 'cuda'
  readonly memoryBandwidthBytesPerSecond: number
  /** Arithmetic without matrix units; attention over one query uses it. */
  readonly vectorFlops: number
  /** Large matrix products: matrix units where the chip has them, else the same as `vectorFlops`. */
  readonly matrixFlops: number
  readonly clockHertz: number
  readonly memoryOptionsBytes: readonly number[]
  /** Share of the machine's memory that a GPU may hold. */
  readonly memoryShareUsable: number
  readonly rdmaPorts: number
  readonly wattsIdle: number
  readonly wattsLoad: number
}

/** What a probe found on one machine. Absent fields were not measured. */
export interface MachineMeasurement {
  readonly memoryBytesPerSecond?: number
  readonly kernelSeconds?: number
  readonly matmulFlops?: number
}

export interface MachineFigures {
  /** What the memory could do at best: no prediction reads faster. */
  readonly memoryPeakBytesPerSecond: number
  readonly memoryBytesPerSecond: number
  readonly vectorFlops: number
  readonly matmulFlops: number
  readonly kernelSeconds: number
  readonly wattsIdle: number
  readonly wattsLoad: number
  readonly measured: {
    readonly memory: boolean
    readonly kernels: boolean
    readonly matmul: boolean
  }
}

/** The clock for which `kernelSeconds` is stated: an M3 Ultra's GPU. */
const referenceClockHertz = 1.38e9

export function machineFigures(
  chip: ChipFigures,
  constants: Constants,
  measurement: MachineMeasurement = {},
): MachineFigures {
  const peak = chip.memoryBandwidthBytesPerSecond
  return {
    // A measurement above the specification moves the roof, it does not break it.
    memoryPeakBytesPerSecond: Math.max(peak, measurement.memoryBytesPerSecond ?? 0),
    memoryBytesPerSecond:
      measurement.memoryBytesPerSecond ??
      chip.memoryBandwidthBytesPerSecond * constants.memoryEfficiency,
    vectorFlops: chip.vectorFlops * constants.attentionShare,
    matmulFlops: measurement.matmulFlops ?? chip.matrixFlops * constants.matmulEfficiency,
    kernelSeconds:
      measurement.kernelSeconds ??
      constants.kernelSeconds * (referenceClockHertz / chip.clockHertz),
    wattsIdle: chip.wattsIdle,
    wattsLoad: chip.wattsLoad,
    measured: {
      memory: measurement.memoryBytesPerSecond !== undefined,
      kernels: measurement.kernelSeconds !== undefined,
      matmul: measurement.matmulFlops !== undefined,
    },
  }
}
