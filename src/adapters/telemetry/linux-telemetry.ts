// Telemetry of a Linux machine: /proc for load and memory, hwmon for heat, nvidia-smi for GPUs.
import { type Fact, chainFact, known, mapFact, unknown } from '../../core/machine-facts/fact.ts'
import {
  type PartialTelemetry,
  type Reading,
  type Telemetry,
  combineTelemetry,
} from '../../core/telemetry/telemetry.ts'
import type { MachineAccess } from '../../ports/machine-access.ts'
import type { TelemetrySource } from '../../ports/telemetry.ts'
import { parseMeminfo } from '../probers/linux/host.ts'
import { textOfFile } from '../probers/outcome.ts'
import { wholeLines, wholeNumber } from '../probers/text.ts'
import { sampleGpus } from './nvidia-telemetry.ts'

export interface LinuxTelemetryComponents {
  readonly machine: string
  readonly access: Pick<MachineAccess, 'runCommand' | 'readText' | 'listFolder'>
  readonly nowMs: () => number
  readonly wait: (ms: number) => Promise<void>
}

/**
 * Load is the difference of two counters. Over less than this it is noise, mostly our own; over more it would
 * tell of what has long passed as if it were now.
 */
const loadWindowMs = { min: 400, max: 5000 } as const

export function createLinuxTelemetry(components: LinuxTelemetryComponents): TelemetrySource {
  let before: { readonly atMs: number; readonly times: CpuTimes } | null = null
  const readTimes = async (): Promise<Fact<CpuTimes>> => {
    const stat = await readFile(components.access, '/proc/stat')
    return chainFact(stat, parseCpuTimes)
  }
  const keep = (times: Fact<CpuTimes>): void => {
    before = times.known ? { atMs: components.nowMs(), times: times.value } : null
  }
  const openWindow = async (): Promise<void> => {
    if (before === null || components.nowMs() - before.atMs > loadWindowMs.max)
      keep(await readTimes())
    const openMs = before === null ? 0 : components.nowMs() - before.atMs
    if (openMs < loadWindowMs.min) await components.wait(loadWindowMs.min - openMs)
  }
  const sample = async (): Promise<Telemetry> => {
    const { access, machine } = components
    await openWindow()
    const [times, memory, celsius, gpus] = await Promise.all([
      readTimes(),
      readFile(access, '/proc/meminfo'),
      hottestSensor(access),
      sampleGpus(access.runCommand, components.nowMs),
    ])
    const load = chainFact(times, (now) => loadBetween(before?.times ?? null, now))
    keep(times)
    const readings = machineReadings({ memory, load, celsius, atMs: components.nowMs() })
    return combineTelemetry(machine, [{ ...readings, gpus }])
  }
  // Two at once would close each other's window; the second gets what the first finds.
  let running: Promise<Telemetry> | null = null
  return {
    sample: () => {
      running ??= sample().finally(() => (running = null))
      return running
    },
  }
}

async function readFile(
  access: Pick<MachineAccess, 'readText'>,
  path: string,
): Promise<Fact<string>> {
  return textOfFile(path, await access.readText(path))
}

function machineReadings(seen: {
  readonly memory: Fact<string>
  readonly load: Fact<number>
  readonly celsius: Fact<{ readonly celsius: number; readonly sensor: string }>
  readonly atMs: number
}): PartialTelemetry {
  const read = (source: string, fact: Fact<number>): Fact<Reading<number>> =>
    mapFact(fact, (value) => ({ value, atMs: seen.atMs, source }))
  const memory = mapFact(seen.memory, parseMeminfo)
  const total = chainFact(memory, (one) => one.totalBytes)
  const available = chainFact(memory, (one) => one.availableBytes)
  return {
    cpuLoad: read('/proc/stat', seen.load),
    cpuCelsius: seen.celsius.known
      ? known({
          value: seen.celsius.value.celsius,
          atMs: seen.atMs,
          source: `hwmon ${seen.celsius.value.sensor}`,
        })
      : seen.celsius,
    memoryTotalBytes: read('/proc/meminfo', total),
    memoryUsedBytes: read(
      '/proc/meminfo',
      chainFact(total, (all) => mapFact(available, (free) => all - free)),
    ),
  }
}

export interface CpuTimes {
  readonly busy: number
  readonly total: number
}

/** The first line of /proc/stat: user, nice, system, idle, iowait, … in ticks since boot. */
export function parseCpuTimes(text: string): Fact<CpuTimes> {
  const line = wholeLines(text).find((one) => /^cpu\s/.test(one))
  const ticks = (line ?? '').trim().split(/\s+/).slice(1).map(Number)
  if (ticks.length < 5 || ticks.some((one) => !Number.isFinite(one)))
    return unknown('not-understood', '/proc/stat has no line of all processors')
  // Guest time is counted in user time already.
  const total = ticks.slice(0, 8).reduce((sum, one) => sum + one, 0)
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0)
  return known({ busy: total - idle, total })
}

export function loadBetween(before: CpuTimes | null, now: CpuTimes): Fact<number> {
  if (before === null || now.total <= before.total)
    return unknown('not-printed', '/proc/stat counts no time between two looks')
  return known((now.busy - before.busy) / (now.total - before.total))
}

/** Drivers whose sensors sit in the processor. */
const cpuSensors = /^(coretemp|k10temp|zenpower|cpu_thermal|acpitz)$/

async function hottestSensor(
  access: Pick<MachineAccess, 'readText' | 'listFolder'>,
): Promise<Fact<{ readonly celsius: number; readonly sensor: string }>> {
  const root = '/sys/class/hwmon'
  const folders = await access.listFolder(root)
  if (folders === null) return unknown('not-printed', `${root} does not exist`)
  let hottest: { celsius: number; sensor: string } | null = null
  for (const folder of folders) {
    const name = await readFile(access, `${root}/${folder}/name`)
    if (!name.known || !cpuSensors.test(name.value.trim())) continue
    const entries = (await access.listFolder(`${root}/${folder}`)) ?? []
    for (const entry of entries.filter((one) => /^temp\d+_input$/.test(one))) {
      const text = await readFile(access, `${root}/${folder}/${entry}`)
      const milli = text.known ? wholeNumber(text.value.trim()) : null
      if (milli === null || milli === 0) continue
      if (hottest === null || milli / 1000 > hottest.celsius)
        hottest = { celsius: milli / 1000, sensor: name.value.trim() }
    }
  }
  return hottest === null
    ? unknown('not-printed', 'no sensor of the processor is listed')
    : known(hottest)
}
