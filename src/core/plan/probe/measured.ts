// From raw probe timings to the constants that the planner uses in place of the chip table, with the
// versions and cables they hold for, and when they have gone stale.
import type { MachineId } from '../../ids.ts'
import type { MachineMeasurement } from '../cost/figures.ts'
import type { WorldMeasurement } from '../cost/links.ts'

export interface ProbeVersions {
  readonly os: string
  readonly mlx: string
  readonly worker: string
}

/** What several machines run together: equal ones once, different ones side by side. */
export function combineVersions(all: readonly ProbeVersions[]): ProbeVersions {
  const of = (field: keyof ProbeVersions): string =>
    [...new Set(all.map((versions) => versions[field]))].sort().join(' and ')
  return { os: of('os'), mlx: of('mlx'), worker: of('worker') }
}

/** One synthetic model decoded for a while: what a step read, how many kernels it had, how long it took. */
export interface DecodeSample {
  readonly bytesRead: number
  readonly kernels: number
  readonly seconds: readonly number[]
}

export interface PrefillSample {
  readonly flops: number
  readonly seconds: readonly number[]
}

export interface MachineProbe {
  readonly machine: MachineId
  readonly versions: ProbeVersions
  readonly atMs: number
  readonly decode: readonly DecodeSample[]
  readonly prefill: readonly PrefillSample[]
}

export interface WorldProbe {
  readonly machines: readonly MachineId[]
  readonly backend: 'ring' | 'jaccl'
  readonly versions: ProbeVersions
  /** Which cables or routes it ran over: changes when someone replugs. */
  readonly cables: string
  readonly atMs: number
  readonly smallSeconds: readonly number[]
  readonly mebibyteSeconds: readonly number[]
}

export interface HopProbe {
  readonly source: MachineId
  readonly target: MachineId
  readonly versions: ProbeVersions
  readonly cables: string
  readonly atMs: number
  readonly seconds: readonly number[]
}

/** What is stored. `spread` is relative: half the distance between the quartiles. */
export interface Measured<Value> {
  readonly value: Value
  readonly spread: number
  readonly versions: ProbeVersions
  readonly cables: string | null
  readonly atMs: number
}

export type MeasuredMachine = Measured<Required<MachineMeasurement>> & {
  readonly machine: MachineId
}
export type MeasuredWorldRecord = Measured<WorldMeasurement> & {
  readonly machines: readonly MachineId[]
  readonly backend: 'ring' | 'jaccl'
}
export type MeasuredHop = Measured<{ readonly hopSeconds: number }> & {
  readonly source: MachineId
  readonly target: MachineId
}

export type ProbeOutcome<Value> =
  | { readonly kind: 'measured'; readonly measured: Value }
  | { readonly kind: 'unusable'; readonly why: string }

function quantile(sorted: readonly number[], part: number): number {
  const at = (sorted.length - 1) * part
  const below = Math.floor(at)
  const low = sorted[below] ?? 0
  return low + (at - below) * ((sorted[below + 1] ?? low) - low)
}

export function medianOf(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  )
}

function spreadOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = quantile(sorted, 0.5)
  return middle > 0 ? (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2 / middle : Infinity
}

const decodeSamplesMin = 2

/**
 * Step time = bytes / bandwidth + kernels × launch time. Two shapes give both; more are fitted so that
 * relative errors are least. Shapes that differ too little, or timings that would need a negative
 * launch time, are refused rather than believed.
 */
export function measureMachine(probe: MachineProbe): ProbeOutcome<MeasuredMachine> {
  const unusable = (why: string): ProbeOutcome<MeasuredMachine> => ({ kind: 'unusable', why })
  const samples = probe.decode.filter((sample) => sample.seconds.length > 0)
  if (samples.length < decodeSamplesMin)
    return unusable('fewer than two synthetic models were timed')
  let bb = 0
  let bk = 0
  let kk = 0
  let b = 0
  let k = 0
  for (const sample of samples) {
    const seconds = medianOf(sample.seconds)
    if (!(seconds > 0)) return unusable('a step took no time at all')
    const bytes = sample.bytesRead / seconds
    const kernels = sample.kernels / seconds
    bb += bytes * bytes
    bk += bytes * kernels
    kk += kernels * kernels
    b += bytes
    k += kernels
  }
  const determinant = bb * kk - bk * bk
  if (determinant <= 1e-6 * bb * kk)
    return unusable('the synthetic models are too much alike to tell reading from launching')
  const secondsPerByte = (b * kk - k * bk) / determinant
  const kernelSeconds = (k * bb - b * bk) / determinant
  if (secondsPerByte <= 0 || kernelSeconds <= 0)
    return unusable('the timings contradict each other; the machine was busy with something else')
  const rates = probe.prefill.flatMap((sample) =>
    sample.seconds.map((seconds) => sample.flops / seconds),
  )
  if (rates.length === 0) return unusable('no prefill was timed')
  return {
    kind: 'measured',
    measured: {
      machine: probe.machine,
      value: {
        memoryBytesPerSecond: 1 / secondsPerByte,
        kernelSeconds,
        matmulFlops: medianOf(rates),
      },
      spread: Math.max(...samples.map((sample) => spreadOf(sample.seconds))),
      versions: probe.versions,
      cables: null,
      atMs: probe.atMs,
    },
  }
}

export function measureWorld(probe: WorldProbe): ProbeOutcome<MeasuredWorldRecord> {
  if (probe.smallSeconds.length === 0 || probe.mebibyteSeconds.length === 0)
    return { kind: 'unusable', why: 'small and 1 MiB all-reduces must both be timed' }
  const smallSeconds = medianOf(probe.smallSeconds)
  return {
    kind: 'measured',
    measured: {
      machines: probe.machines,
      backend: probe.backend,
      // A large all-reduce is never quicker than a small one; noise on a quiet cable may say so.
      value: {
        smallSeconds,
        mebibyteSeconds: Math.max(smallSeconds, medianOf(probe.mebibyteSeconds)),
      },
      spread: spreadOf(probe.smallSeconds),
      versions: probe.versions,
      cables: probe.cables,
      atMs: probe.atMs,
    },
  }
}

export function measureHop(probe: HopProbe): ProbeOutcome<MeasuredHop> {
  if (probe.seconds.length === 0) return { kind: 'unusable', why: 'no hop was timed' }
  return {
    kind: 'measured',
    measured: {
      source: probe.source,
      target: probe.target,
      value: { hopSeconds: medianOf(probe.seconds) },
      spread: spreadOf(probe.seconds),
      versions: probe.versions,
      cables: probe.cables,
      atMs: probe.atMs,
    },
  }
}

/** Why a stored measurement no longer counts; empty while it does. */
export function staleReasons(
  measured: Pick<Measured<unknown>, 'versions' | 'cables'>,
  now: { readonly versions: ProbeVersions; readonly cables: string | null },
): string[] {
  const reasons: string[] = []
  const { versions } = measured
  if (versions.os !== now.versions.os)
    reasons.push(`the system changed from ${versions.os} to ${now.versions.os}`)
  if (versions.mlx !== now.versions.mlx)
    reasons.push(`MLX changed from ${versions.mlx} to ${now.versions.mlx}`)
  if (versions.worker !== now.versions.worker)
    reasons.push(`the worker changed from ${versions.worker} to ${now.versions.worker}`)
  if (measured.cables !== null && measured.cables !== now.cables)
    reasons.push('a cable or route changed')
  return reasons
}
