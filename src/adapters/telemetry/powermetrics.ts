// powermetrics, in both of its forms. It needs root. Powers are milliwatts; the GPU's "freq_hz" is in
// megahertz in spite of its name, while the clusters' are hertz; temperatures are not told on Apple silicon.
import { type Fact, chainFact, known, mapFact, unknown } from '../../core/machine-facts/fact.ts'
import type { PartialTelemetry, Reading, ThermalPressure } from '../../core/telemetry/telemetry.ts'
import { type PlistValue, parsePlist } from '../probers/plist.ts'
import { wholeLines } from '../probers/text.ts'

export const powermetricsCommand = [
  'powermetrics',
  '-n',
  '1',
  '-i',
  '500',
  '-s',
  'cpu_power,gpu_power,thermal',
  '-f',
  'plist',
] as const

const source = 'powermetrics'

/** Samples are separated by NUL; a last one that breaks off is left out. */
export function parsePowermetricsPlist(text: string, nowMs: number): readonly PartialTelemetry[] {
  return text
    .split('\0')
    .filter((part) => part.trim() !== '')
    .flatMap((part) => {
      const root = parsePlist(part)
      return root.known && root.value instanceof Map ? [sampleOf(root.value, nowMs)] : []
    })
}

type Dictionary = ReadonlyMap<string, PlistValue>

function sampleOf(root: Dictionary, nowMs: number): PartialTelemetry {
  const processor = dictionaryAt(root, 'processor')
  const gpu = dictionaryAt(root, 'gpu')
  const atMs = timeOf(root) ?? nowMs
  const read = (fact: Fact<number>): Fact<Reading<number>> =>
    mapFact(fact, (value) => ({ value, atMs, source }))
  const watts = (key: string): Fact<Reading<number>> =>
    read(mapFact(numberAt(processor, key), (milliwatts) => milliwatts / 1000))
  return {
    cpuWatts: watts('cpu_power'),
    gpuWatts: watts('gpu_power'),
    aneWatts: watts('ane_power'),
    packageWatts: watts('combined_power'),
    gpuLoad: read(mapFact(numberAt(gpu, 'idle_ratio'), (idle) => 1 - idle)),
    gpuMhz: read(numberAt(gpu, 'freq_hz')),
    thermalPressure: chainFact(textAt(root, 'thermal_pressure'), (word) => pressureOf(word, atMs)),
  }
}

function timeOf(root: Dictionary): number | null {
  const text = root.get('timestamp')
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? null : time
}

function dictionaryAt(root: Dictionary, key: string): Dictionary {
  const value = root.get(key)
  return value instanceof Map ? value : new Map<string, PlistValue>()
}

function numberAt(dictionary: Dictionary, key: string): Fact<number> {
  const value = dictionary.get(key)
  return typeof value === 'number' ? known(value) : notPrinted(key)
}

function textAt(dictionary: Dictionary, key: string): Fact<string> {
  const value = dictionary.get(key)
  return typeof value === 'string' ? known(value) : notPrinted(key)
}

const notPrinted = (key: string) => unknown('not-printed', `powermetrics prints no "${key}"`)

const pressures: ReadonlySet<string> = new Set([
  'nominal',
  'moderate',
  'heavy',
  'trapping',
  'sleeping',
])

function pressureOf(word: string, atMs: number): Fact<Reading<ThermalPressure>> {
  const value = word.toLowerCase()
  return pressures.has(value)
    ? known({ value: value as ThermalPressure, atMs, source })
    : unknown('not-understood', `the thermal pressure "${word}" is new to Bushel`)
}

/** The text form: blocks that begin with "*** Sampled system activity (DATE) …". */
export function parsePowermetricsText(text: string, nowMs: number): readonly PartialTelemetry[] {
  const blocks: { atMs: number; lines: string[] }[] = []
  const loose: string[] = []
  for (const line of wholeLines(text)) {
    const header = /^\*\*\* Sampled system activity \((.+?)\) \(/.exec(line)
    if (header !== null) {
      const time = Date.parse((header[1] ?? '').replace(/^\w{3} /, ''))
      blocks.push({ atMs: Number.isNaN(time) ? nowMs : time, lines: [] })
    } else (blocks.at(-1)?.lines ?? loose).push(line)
  }
  // Excerpts come without a header; they are one sample, taken now.
  const all = blocks.length > 0 ? blocks : [{ atMs: nowMs, lines: loose }]
  return all.map((block) => blockSample(block.lines, block.atMs))
}

function blockSample(lines: readonly string[], atMs: number): PartialTelemetry {
  const find = (pattern: RegExp): string | undefined =>
    lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])[0]
  const number = (key: string, pattern: RegExp, scale: number): Fact<Reading<number>> => {
    const found = find(pattern)
    return found === undefined
      ? notPrinted(key)
      : known({ value: Number(found) * scale, atMs, source })
  }
  const pressure = find(/^Current pressure level: (\w+)$/)
  return {
    cpuWatts: number('CPU Power', /^CPU Power: (\d+) mW$/, 0.001),
    gpuWatts: number('GPU Power', /^GPU Power: (\d+) mW$/, 0.001),
    aneWatts: number('ANE Power', /^ANE Power: (\d+) mW$/, 0.001),
    packageWatts: number(
      'Combined Power',
      /^Combined Power \(CPU \+ GPU \+ ANE\): (\d+) mW$/,
      0.001,
    ),
    gpuLoad: number('GPU HW active residency', /^GPU HW active residency:\s+([\d.]+)%/, 0.01),
    gpuMhz: number('GPU HW active frequency', /^GPU HW active frequency: (\d+) MHz$/, 1),
    thermalPressure:
      pressure === undefined ? notPrinted('Current pressure level') : pressureOf(pressure, atMs),
  }
}
