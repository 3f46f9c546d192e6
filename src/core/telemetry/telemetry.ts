// What a machine is doing right now: power, heat, load and memory. Every reading carries its time and its
// source; what no tool told is absent with the reason, and is never filled in.
import { type Fact, firstKnown, unknown } from '../machine-facts/fact.ts'

export interface Reading<T> {
  readonly value: T
  readonly atMs: number
  /** The tool that told it: "powermetrics", "macmon", "nvidia-smi". */
  readonly source: string
}

export interface Telemetry {
  readonly machine: string
  readonly cpuWatts: Fact<Reading<number>>
  readonly gpuWatts: Fact<Reading<number>>
  readonly aneWatts: Fact<Reading<number>>
  /** CPU, GPU and neural engine together. */
  readonly packageWatts: Fact<Reading<number>>
  /** The whole machine, as its power supply sees it. */
  readonly systemWatts: Fact<Reading<number>>
  readonly cpuCelsius: Fact<Reading<number>>
  readonly gpuCelsius: Fact<Reading<number>>
  /** Between zero and one. */
  readonly cpuLoad: Fact<Reading<number>>
  readonly gpuLoad: Fact<Reading<number>>
  readonly gpuMhz: Fact<Reading<number>>
  readonly memoryUsedBytes: Fact<Reading<number>>
  readonly memoryTotalBytes: Fact<Reading<number>>
  readonly swapUsedBytes: Fact<Reading<number>>
  readonly thermalPressure: Fact<Reading<ThermalPressure>>
  /** Percent of full speed that the system allows the CPU. */
  readonly speedLimitPercent: Fact<Reading<number>>
  readonly gpus: readonly GpuTelemetry[]
}

/** Apple's own words, from cool to hot. */
export type ThermalPressure = 'nominal' | 'moderate' | 'heavy' | 'trapping' | 'sleeping'

export interface GpuTelemetry {
  readonly index: number
  readonly name: string
  readonly load: Fact<Reading<number>>
  readonly watts: Fact<Reading<number>>
  readonly wattsMax: Fact<Reading<number>>
  readonly celsius: Fact<Reading<number>>
  readonly memoryUsedBytes: Fact<Reading<number>>
  readonly memoryTotalBytes: Fact<Reading<number>>
  readonly clockMhz: Fact<Reading<number>>
  readonly clockReasons: Fact<Reading<readonly ClockReason[]>>
}

export type ClockReason =
  | 'idle'
  | 'power-cap'
  | 'hardware-slowdown'
  | 'software-thermal'
  | 'hardware-thermal'
  | 'power-brake'
  | 'other'

/** What one source can tell; the rest stays as it is. */
export type PartialTelemetry = Partial<Omit<Telemetry, 'machine' | 'gpus'>> & {
  readonly gpus?: readonly GpuTelemetry[]
}

/** A reading older than this is shown as old: sources answer every second or two. */
export const readingFreshMs = 10_000

export function ageMs(reading: Reading<unknown>, nowMs: number): number {
  return Math.max(0, nowMs - reading.atMs)
}

export function isFresh(reading: Reading<unknown>, nowMs: number): boolean {
  return ageMs(reading, nowMs) <= readingFreshMs
}

const nobody = unknown('not-applicable', 'no source on this machine tells it')

/** Sources in order of trust: the first that knows a figure gives it. */
export function combineTelemetry(machine: string, sources: readonly PartialTelemetry[]): Telemetry {
  const pick = <Key extends keyof Omit<Telemetry, 'machine' | 'gpus'>>(
    key: Key,
  ): Telemetry[Key] => {
    const told = sources.flatMap((source) => {
      const fact = source[key]
      return fact === undefined ? [] : [fact as Fact<never>]
    })
    const [first, ...others] = told
    return first === undefined ? nobody : firstKnown(first, ...others)
  }
  return {
    machine,
    cpuWatts: pick('cpuWatts'),
    gpuWatts: pick('gpuWatts'),
    aneWatts: pick('aneWatts'),
    packageWatts: pick('packageWatts'),
    systemWatts: pick('systemWatts'),
    cpuCelsius: pick('cpuCelsius'),
    gpuCelsius: pick('gpuCelsius'),
    cpuLoad: pick('cpuLoad'),
    gpuLoad: pick('gpuLoad'),
    gpuMhz: pick('gpuMhz'),
    memoryUsedBytes: pick('memoryUsedBytes'),
    memoryTotalBytes: pick('memoryTotalBytes'),
    swapUsedBytes: pick('swapUsedBytes'),
    thermalPressure: pick('thermalPressure'),
    speedLimitPercent: pick('speedLimitPercent'),
    gpus: sources.flatMap((source) => source.gpus ?? []),
  }
}
