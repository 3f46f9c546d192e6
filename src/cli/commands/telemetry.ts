// bushel telemetry: power, heat, load and memory of every machine, with the age of what is old.
import type { Command } from 'commander'
import type { Fact } from '../../core/machine-facts/fact.ts'
import { type Reading, ageMs, isFresh } from '../../core/telemetry/telemetry.ts'
import { formatBytes, formatDuration } from '../../core/units.ts'
import type { CliContext } from '../command.ts'
import type { ClusterTelemetry, MachineTelemetry } from '../daemon/telemetry-exchange.ts'
import { requireDaemon } from '../daemon-client.ts'
import { homeDir } from '../settings.ts'
import { table } from '../table.ts'

export function register(command: Command, context: CliContext): void {
  command.action(async (options: { json?: boolean }) => {
    const daemon = requireDaemon(homeDir(context.env))
    const cluster = (await daemon.get('/cluster/telemetry')) as ClusterTelemetry
    const { machines, silent, away } = cluster
    if (options.json === true) {
      context.out.json(cluster)
      return
    }
    const head = ['MACHINE', 'POWER', 'HEAT', 'CPU', 'GPU', 'MEMORY', 'THERMAL STATE']
    context.out.result(table(head, machines.map(rowOf)))
    for (const { telemetry, throttling } of machines)
      for (const { cause, evidence } of throttling)
        context.out.result(`${telemetry.machine} holds itself back (${cause}): ${evidence}`)
    for (const { name, reason } of [...silent, ...away])
      context.out.note(`${name} could not be asked: ${reason}`)
    for (const line of withoutPower(machines)) context.out.note(line)
  })
}

/** Machines that tell no power for the same reason are told together. */
function withoutPower(machines: readonly MachineTelemetry[]): readonly string[] {
  const names = new Map<string, string[]>()
  for (const { telemetry } of machines) {
    const power = powerOf(telemetry)
    if (!power.known)
      names.set(power.why.detail, [...(names.get(power.why.detail) ?? []), telemetry.machine])
  }
  return [...names].map(([why, who]) => `No power is told of ${who.join(', ')}: ${why}`)
}

function powerOf({
  systemWatts,
  packageWatts,
  gpus,
}: MachineTelemetry['telemetry']): Fact<Reading<number>> {
  if (systemWatts.known) return systemWatts
  return packageWatts.known
    ? packageWatts
    : (gpus.find((gpu) => gpu.watts.known)?.watts ?? packageWatts)
}

export function rowOf({ telemetry, nowMs }: MachineTelemetry): string[] {
  const { cpuCelsius, gpuCelsius, cpuLoad, gpuLoad, thermalPressure } = telemetry
  const { memoryUsedBytes, memoryTotalBytes } = telemetry
  const show = <T>(fact: Fact<Reading<T>>, text: (value: T) => string): string => {
    if (!fact.known) return '–'
    const old = isFresh(fact.value, nowMs)
      ? ''
      : ` (${formatDuration(ageMs(fact.value, nowMs))} ago)`
    return `${text(fact.value.value)}${old}`
  }
  const percent = (load: number): string => `${Math.round(load * 100)}%`
  const [gpu] = telemetry.gpus
  const heat = gpuCelsius.known ? gpuCelsius : cpuCelsius.known ? cpuCelsius : gpu?.celsius
  return [
    telemetry.machine,
    show(powerOf(telemetry), (watts) => `${watts.toFixed(1)} W`),
    show(heat ?? cpuCelsius, (celsius) => `${Math.round(celsius)} °C`),
    show(cpuLoad, percent),
    show(gpuLoad.known ? gpuLoad : (gpu?.load ?? gpuLoad), percent),
    show(memoryUsedBytes, (used) =>
      memoryTotalBytes.known
        ? `${formatBytes(used)} of ${formatBytes(memoryTotalBytes.value.value)}`
        : formatBytes(used),
    ),
    show(thermalPressure, (word) => word),
  ]
}
