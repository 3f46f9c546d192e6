// macmon's JSON lines. Off unless asked for: running beside MLX it is reported to make Metal abort. Names
// changed with version 0.8, which some versions print beside the old ones.
import { type Fact, chainFact, known, unknown } from '../../core/machine-facts/fact.ts'
import type { PartialTelemetry, Reading } from '../../core/telemetry/telemetry.ts'
import {
  type Json,
  type JsonObject,
  asArray,
  asObject,
  parseJson,
  wholeLines,
} from '../probers/text.ts'

export const macmonCommand = ['macmon', 'pipe', '-s', '1', '-i', '500'] as const

const source = 'macmon'

export function parseMacmon(text: string, nowMs: number): readonly PartialTelemetry[] {
  return wholeLines(text).flatMap((line) => {
    const sample = parseJson('macmon', line)
    const object = sample.known ? asObject(sample.value) : null
    return object === null ? [] : [sampleOf(object, nowMs)]
  })
}

function sampleOf(sample: JsonObject, nowMs: number): PartialTelemetry {
  // Before 0.6 there is no timestamp; the line has just been printed then.
  const told =
    typeof sample['timestamp'] === 'string' ? Date.parse(sample['timestamp']) : Number.NaN
  const atMs = Number.isNaN(told) ? nowMs : told
  const read = (value: Json | undefined, key: string): Fact<Reading<number>> =>
    typeof value === 'number' && Number.isFinite(value)
      ? known({ value, atMs, source })
      : unknown('not-printed', `macmon prints no "${key}"`)
  const temperature = asObject(sample['temp']) ?? {}
  const memory = asObject(sample['memory']) ?? {}
  const pair = (key: string): readonly Json[] => asArray(sample[key]) ?? []
  return {
    cpuWatts: read(sample['cpu_power'], 'cpu_power'),
    gpuWatts: read(sample['gpu_power'], 'gpu_power'),
    aneWatts: read(sample['ane_power'], 'ane_power'),
    packageWatts: read(sample['all_power'], 'all_power'),
    systemWatts: read(sample['sys_power'], 'sys_power'),
    cpuCelsius: warm(read(temperature['cpu_temp_avg'], 'cpu_temp_avg')),
    gpuCelsius: warm(read(temperature['gpu_temp_avg'], 'gpu_temp_avg')),
    gpuLoad: read(
      sample['gpu_active_ratio'] ?? sample['gpu_scaled_ratio'] ?? pair('gpu_usage')[1],
      'gpu_usage',
    ),
    cpuLoad: read(sample['cpu_active_ratio'], 'cpu_active_ratio'),
    gpuMhz: read(sample['gpu_freq_mhz'] ?? pair('gpu_usage')[0], 'gpu_usage'),
    memoryUsedBytes: read(memory['ram_usage'], 'ram_usage'),
    memoryTotalBytes: read(memory['ram_total'], 'ram_total'),
    swapUsedBytes: read(memory['swap_usage'], 'swap_usage'),
  }
}

/** A sensor that cannot be read is printed as zero, which no running chip has. */
function warm(celsius: Fact<Reading<number>>): Fact<Reading<number>> {
  return chainFact(celsius, (reading) =>
    reading.value > 0 ? known(reading) : unknown('not-printed', 'the sensor reads zero'),
  )
}
