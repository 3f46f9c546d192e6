// Telemetry of a Mac: powermetrics where we are root (or may become it without a password), ioreg and
// vm_stat for everyone, pmset for what it says, macmon only when the owner asked for it.
import { type Fact, chainFact, mapFact } from '../../core/machine-facts/fact.ts'
import { probeLimits } from '../../core/machine-facts/limits.ts'
import {
  type PartialTelemetry,
  type Reading,
  combineTelemetry,
} from '../../core/telemetry/telemetry.ts'
import type { MachineAccess } from '../../ports/machine-access.ts'
import type { TelemetrySource } from '../../ports/telemetry.ts'
import { macCommands } from '../probers/mac/commands.ts'
import { parseSysctl, parseVmStat, sysctlNumber } from '../probers/mac/host.ts'
import { parseAccelerator } from '../probers/mac/ioreg.ts'
import { partialTextOf, textOf } from '../probers/outcome.ts'
import { macmonCommand, parseMacmon } from './macmon.ts'
import { parseThermalLimits, thermalCommand } from './pmset-therm.ts'
import { parsePowermetricsPlist, powermetricsCommand } from './powermetrics.ts'

export interface MacTelemetryComponents {
  readonly machine: string
  readonly access: Pick<MachineAccess, 'runCommand'>
  readonly nowMs: () => number
  readonly isRoot: boolean
  /** Off unless the owner wants it: macmon beside MLX is reported to crash it. */
  readonly useMacmon: boolean
}

export function createMacTelemetry(components: MacTelemetryComponents): TelemetrySource {
  return {
    sample: async () => {
      const sources = await Promise.all([
        samplePowermetrics(components),
        sampleMacmon(components),
        sampleWithoutRights(components),
      ])
      return combineTelemetry(components.machine, sources)
    },
  }
}

async function ask(components: MacTelemetryComponents, argv: readonly string[]) {
  const outcome = await components.access.runCommand(argv, {
    timeoutMs: probeLimits.commandTimeoutMs,
  })
  return textOf(argv[0] === 'sudo' ? (argv[2] ?? 'sudo') : (argv[0] ?? ''), outcome)
}

async function samplePowermetrics(components: MacTelemetryComponents): Promise<PartialTelemetry> {
  // -n: sudo must never ask; without a standing permission there is simply no reading.
  const argv = components.isRoot ? powermetricsCommand : ['sudo', '-n', ...powermetricsCommand]
  const text = await ask(components, argv)
  if (text.known) return parsePowermetricsPlist(text.value, components.nowMs()).at(-1) ?? {}
  return {
    cpuWatts: text,
    gpuWatts: text,
    aneWatts: text,
    packageWatts: text,
    thermalPressure: text,
    gpuMhz: text,
  }
}

async function sampleMacmon(components: MacTelemetryComponents): Promise<PartialTelemetry> {
  if (!components.useMacmon) return {}
  const text = await ask(components, macmonCommand)
  if (text.known) return parseMacmon(text.value, components.nowMs()).at(-1) ?? {}
  return { systemWatts: text, cpuCelsius: text, gpuCelsius: text }
}

async function sampleWithoutRights(components: MacTelemetryComponents): Promise<PartialTelemetry> {
  const [accelerator, pages, thermal, sysctl] = await Promise.all([
    ask(components, macCommands.accelerator.argv),
    ask(components, macCommands.vmStat.argv),
    ask(components, thermalCommand),
    components.access
      .runCommand(macCommands.sysctl.argv, { timeoutMs: probeLimits.commandTimeoutMs })
      .then((outcome) => partialTextOf('sysctl', outcome)),
  ])
  const atMs = components.nowMs()
  const read = (source: string, fact: Fact<number>): Fact<Reading<number>> =>
    mapFact(fact, (value) => ({ value, atMs, source }))
  const gpu = chainFact(accelerator, parseAccelerator)
  const total = chainFact(sysctl, (text) => sysctlNumber(parseSysctl(text), 'hw.memsize'))
  const used = chainFact(chainFact(pages, parseVmStat), ({ availableBytes }) =>
    mapFact(total, (bytes) => bytes - availableBytes),
  )
  return {
    gpuLoad: read(
      'ioreg',
      chainFact(gpu, (one) => one.loadRatio),
    ),
    memoryUsedBytes: read('vm_stat', used),
    memoryTotalBytes: read('sysctl', total),
    ...(thermal.known ? parseThermalLimits(thermal.value, atMs) : { speedLimitPercent: thermal }),
  }
}
