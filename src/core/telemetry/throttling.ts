// Whether a machine holds itself back, and how that was seen. Old readings say nothing about now.
import type { Fact } from '../machine-facts/fact.ts'
import {
  type ClockReason,
  type GpuTelemetry,
  type Reading,
  type Telemetry,
  type ThermalPressure,
  isFresh,
} from './telemetry.ts'

export interface Throttling {
  readonly cause: 'heat' | 'power'
  readonly evidence: string
}

const hot: ReadonlySet<ThermalPressure> = new Set(['moderate', 'heavy', 'trapping', 'sleeping'])

const causeOfReason: Readonly<Partial<Record<ClockReason, Throttling['cause']>>> = {
  'hardware-slowdown': 'heat',
  'software-thermal': 'heat',
  'hardware-thermal': 'heat',
  'power-brake': 'power',
  'power-cap': 'power',
}

export function findThrottling(telemetry: Telemetry, nowMs: number): readonly Throttling[] {
  const found: Throttling[] = []
  const pressure = fresh(telemetry.thermalPressure, nowMs)
  if (pressure !== null && hot.has(pressure))
    found.push({ cause: 'heat', evidence: `thermal pressure is ${pressure}` })
  const limit = fresh(telemetry.speedLimitPercent, nowMs)
  if (limit !== null && limit < 100)
    found.push({ cause: 'heat', evidence: `the CPU is limited to ${limit}% of its speed` })
  return [...found, ...telemetry.gpus.flatMap((gpu) => gpuThrottling(gpu, nowMs))]
}

function gpuThrottling(gpu: GpuTelemetry, nowMs: number): readonly Throttling[] {
  const reasons = fresh(gpu.clockReasons, nowMs) ?? []
  return reasons.flatMap((reason) => {
    const cause = causeOfReason[reason]
    return cause === undefined
      ? []
      : [{ cause, evidence: `GPU ${gpu.index} (${gpu.name}) holds its clock back: ${reason}` }]
  })
}

function fresh<T>(fact: Fact<Reading<T>>, nowMs: number): T | null {
  return fact.known && isFresh(fact.value, nowMs) ? fact.value.value : null
}
