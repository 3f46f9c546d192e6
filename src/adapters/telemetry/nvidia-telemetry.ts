// nvidia-smi: load, power, heat and the reasons why a GPU runs below its clock.
import { type Fact, chainFact, known, mapFact, unknown } from '../../core/machine-facts/fact.ts'
import { probeLimits } from '../../core/machine-facts/limits.ts'
import type { ClockReason, GpuTelemetry, Reading } from '../../core/telemetry/telemetry.ts'
import { MiB } from '../../core/units.ts'
import type { RunCommand } from '../../ports/machine-access.ts'
import { type GpuRow, gpuNumber, gpuText, parseGpuRows } from '../probers/nvidia/nvidia-smi.ts'
import { textOf } from '../probers/outcome.ts'

const source = 'nvidia-smi'

export const gpuTelemetryFields = [
  'index',
  'name',
  'utilization.gpu',
  'memory.used',
  'memory.total',
  'temperature.gpu',
  'power.draw',
  'power.limit',
  'clocks.current.sm',
] as const

/** Renamed by newer drivers; the older name is asked for when the newer one is refused. */
const reasonFields = ['clocks_event_reasons.active', 'clocks_throttle_reasons.active'] as const

export const gpuTelemetryQuery = (fields: readonly string[]): readonly string[] => [
  'nvidia-smi',
  `--query-gpu=${fields.join(',')}`,
  '--format=csv,noheader,nounits',
]

export async function sampleGpus(
  runCommand: RunCommand,
  nowMs: () => number,
): Promise<readonly GpuTelemetry[]> {
  const options = { timeoutMs: probeLimits.commandTimeoutMs }
  const text = textOf(
    'nvidia-smi',
    await runCommand(gpuTelemetryQuery(gpuTelemetryFields), options),
  )
  const rows = chainFact(text, (all) => parseGpuRows(all, gpuTelemetryFields))
  if (!rows.known) return []
  let reasons: Fact<readonly GpuRow[]> = unknown('not-printed', 'the driver tells no reasons')
  for (const field of reasonFields) {
    const answer = textOf(
      'nvidia-smi',
      await runCommand(gpuTelemetryQuery(['index', field]), options),
    )
    reasons = chainFact(answer, (all) => parseGpuRows(all, ['index', 'reasons']))
    if (reasons.known) break
  }
  const atMs = nowMs()
  return rows.value.map((row, position) => gpuOf({ row, position, reasons, atMs }))
}

function gpuOf(seen: {
  readonly row: GpuRow
  readonly position: number
  readonly reasons: Fact<readonly GpuRow[]>
  readonly atMs: number
}): GpuTelemetry {
  const { row, atMs } = seen
  const index = gpuNumber(row, 'index')
  const read = (fact: Fact<number>, scale = 1): Fact<Reading<number>> =>
    mapFact(fact, (value) => ({ value: value * scale, atMs, source }))
  return {
    index: index.known ? index.value : seen.position,
    name: row.get('name') ?? '',
    load: read(gpuNumber(row, 'utilization.gpu'), 0.01),
    watts: read(gpuNumber(row, 'power.draw')),
    wattsMax: read(gpuNumber(row, 'power.limit')),
    celsius: read(gpuNumber(row, 'temperature.gpu')),
    memoryUsedBytes: read(gpuNumber(row, 'memory.used'), MiB),
    memoryTotalBytes: read(gpuNumber(row, 'memory.total'), MiB),
    clockMhz: read(gpuNumber(row, 'clocks.current.sm')),
    clockReasons: chainFact(seen.reasons, (rows) => {
      const own = rows.find((one) => one.get('index') === row.get('index'))
      if (own === undefined)
        return unknown('not-printed', 'the driver tells no reasons for this GPU')
      return mapFact(chainFact(gpuText(own, 'reasons'), parseClockReasons), (value) => ({
        value,
        atMs,
        source,
      }))
    }),
  }
}

/** The bits of NVML's clocks event reasons. */
const reasonBits: readonly (readonly [number, ClockReason])[] = [
  [0x1, 'idle'],
  [0x4, 'power-cap'],
  [0x8, 'hardware-slowdown'],
  [0x20, 'software-thermal'],
  [0x40, 'hardware-thermal'],
  [0x80, 'power-brake'],
]

export function parseClockReasons(text: string): Fact<readonly ClockReason[]> {
  if (!/^0x[0-9a-f]{1,16}$/i.test(text))
    return unknown('not-understood', `the driver gives "${text.slice(0, 40)}" as reasons`)
  const bits = Number.parseInt(text.slice(2), 16)
  const found = reasonBits.flatMap(([bit, reason]) => ((bits & bit) === 0 ? [] : [reason]))
  const named = reasonBits.reduce((all, [bit]) => all | bit, 0)
  return known((bits & ~named) === 0 ? found : [...found, 'other'])
}
