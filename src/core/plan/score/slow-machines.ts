// A machine that runs well under its prediction for a while is worth a word: which one, since when,
// and what is the likely cause. Decided from samples alone.
import type { MachineId } from '../../ids.ts'
import type { LinkClass } from '../cost/links.ts'

/** What a rank reported of itself, next to what was predicted for its part of a step. */
export interface SpeedSample {
  readonly machine: MachineId
  readonly atMs: number
  readonly predictedSeconds: number
  readonly measuredSeconds: number
  readonly signs: SpeedSigns
}

/** What was seen on the machine meanwhile; null where it cannot be seen. */
export interface SpeedSigns {
  readonly throttled: boolean | null
  readonly onBattery: boolean | null
  readonly memoryPressure: 'normal' | 'warning' | 'critical' | null
  readonly otherGpuLoad: number | null
  /** Programs that want to run, per core: the system's load average over its cores. */
  readonly loadPerCore: number | null
  /** The link that the plan counted on, and the one in use. */
  readonly plannedLink: LinkClass | null
  readonly usedLink: LinkClass | null
  readonly staleMeasurement: boolean
  /** Time spent waiting for other ranks, of the measured time. */
  readonly waitingShare: number | null
}

export interface SlowMachine {
  readonly machine: MachineId
  readonly sinceMs: number
  /** Speed against prediction: 0.6 is 40% under. */
  readonly ratio: number
  readonly cause: string
  readonly advice: string
}

/** Under this part of the predicted speed, without a break, for this long. */
export const slowSpeedShare = 0.7
export const slowForMs = 60_000
/** Samples further apart than this do not make one stretch. */
const gapMsMax = 20_000
const otherGpuLoadMuch = 0.3
/** Our own rank and its daemon account for less than this. */
const loadPerCoreMuch = 1.5
const waitingMuch = 0.5

export function findSlowMachines(samples: readonly SpeedSample[], nowMs: number): SlowMachine[] {
  const perMachine = new Map<MachineId, SpeedSample[]>()
  for (const sample of samples) {
    const list = perMachine.get(sample.machine) ?? []
    list.push(sample)
    perMachine.set(sample.machine, list)
  }
  const slow: SlowMachine[] = []
  for (const [machine, list] of perMachine) {
    const stretch = latestSlowStretch(
      [...list].sort((a, b) => a.atMs - b.atMs),
      nowMs,
    )
    const first = stretch[0]
    const last = stretch.at(-1)
    if (first === undefined || last === undefined || last.atMs - first.atMs < slowForMs) continue
    const predicted = stretch.reduce((sum, sample) => sum + sample.predictedSeconds, 0)
    const measured = stretch.reduce((sum, sample) => sum + sample.measuredSeconds, 0)
    slow.push({
      machine,
      sinceMs: first.atMs,
      ratio: predicted / measured,
      ...likelyCause(stretch),
    })
  }
  return slow
}

/** The run of slow samples that reaches up to now. */
function latestSlowStretch(sorted: readonly SpeedSample[], nowMs: number): SpeedSample[] {
  const stretch: SpeedSample[] = []
  let after = nowMs
  for (const sample of sorted.toReversed()) {
    const ratio = sample.predictedSeconds / sample.measuredSeconds
    if (!(ratio <= slowSpeedShare) || after - sample.atMs > gapMsMax) break
    stretch.unshift(sample)
    after = sample.atMs
  }
  return stretch
}

const mostly = (samples: readonly SpeedSample[], sign: (signs: SpeedSigns) => boolean): boolean =>
  samples.filter((sample) => sign(sample.signs)).length * 2 > samples.length

/** The surest sign first. */
function likelyCause(samples: readonly SpeedSample[]): { cause: string; advice: string } {
  const last = samples.at(-1)?.signs
  if (
    mostly(
      samples,
      (signs) =>
        signs.plannedLink !== null &&
        signs.usedLink !== null &&
        signs.plannedLink !== signs.usedLink,
    )
  )
    return {
      cause: `traffic runs over ${last?.usedLink ?? 'another link'} instead of ${last?.plannedLink ?? 'the planned one'}`,
      advice: 'check the cable, then "bushel doctor"',
    }
  if (
    mostly(
      samples,
      (signs) => signs.memoryPressure === 'critical' || signs.memoryPressure === 'warning',
    )
  )
    return {
      cause: 'memory is short and the system swaps',
      advice: 'close programs, or lend less memory with "bushel up --memory"',
    }
  if (mostly(samples, (signs) => signs.throttled === true))
    return {
      cause: 'the chip throttles because it is hot',
      advice: 'give it air; laptops run cooler on a stand',
    }
  if (mostly(samples, (signs) => signs.onBattery === true))
    return {
      cause: 'it runs on battery',
      advice: 'plug it in, or keep it out with "bushel plan --avoid"',
    }
  if (mostly(samples, (signs) => (signs.otherGpuLoad ?? 0) > otherGpuLoadMuch))
    return {
      cause: 'another program uses the GPU',
      advice: 'see which in Activity Monitor, GPU history',
    }
  if (mostly(samples, (signs) => (signs.loadPerCore ?? 0) > loadPerCoreMuch))
    return {
      cause: 'other programs keep its processor busy',
      advice: 'see which with "top", or keep it out with "bushel drain"',
    }
  if (mostly(samples, (signs) => (signs.waitingShare ?? 0) > waitingMuch))
    return {
      cause: 'it waits for other ranks: collectives are slower than planned',
      advice: 'run "bushel probe" to measure the links again',
    }
  if (mostly(samples, (signs) => signs.staleMeasurement))
    return {
      cause: 'the prediction rests on a measurement from before an update',
      advice: 'run "bushel probe"',
    }
  return {
    cause: 'no sign says why',
    advice: 'run "bushel probe"; if it stays, report the figures',
  }
}
