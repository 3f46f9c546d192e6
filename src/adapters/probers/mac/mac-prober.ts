// The Mac prober: runs the tools side by side, reads what they printed, and puts one picture together.
import { findContradictions } from '../../../core/machine-facts/consistency.ts'
import {
  type Fact,
  chainFact,
  firstKnown,
  known,
  mapFact,
  unknown,
} from '../../../core/machine-facts/fact.ts'
import { probeLimits } from '../../../core/machine-facts/limits.ts'
import type {
  ConfiguredBridge,
  MachineFacts,
  RuntimeVersions,
} from '../../../core/machine-facts/machine.ts'
import {
  type InternetSharing,
  type NetworkService,
  thunderboltPortNumber,
} from '../../../core/machine-facts/network.ts'
import type { CommandOutcome, MachineAccess, ReadOutcome } from '../../../ports/machine-access.ts'
import type { Prober } from '../../../ports/prober.ts'
import { partialTextOf, textOf } from '../outcome.ts'
import { probePath } from '../paths.ts'
import { launchContextOf, parseProcesses, ranksOf } from '../processes.ts'
import { probeRuntime } from '../runtime-versions.ts'
import {
  type MacCommandName,
  type ProbeCommand,
  macCommands,
  macFallbacks,
  serviceInfoCommand,
  sharingPreferences,
} from './commands.ts'
import * as host from './host.ts'
import { parseIfconfig } from './ifconfig.ts'
import { parseAccelerator } from './ioreg.ts'
import * as extras from './network-extras.ts'
import {
  labelInterfaces,
  parseHardwarePorts,
  parseServiceInfo,
  parseServiceOrder,
} from './networksetup.ts'
import { parsePowerSettings, parsePowerSource } from './power.ts'
import { parseIbvDevices, parseRdmaSetting, rdmaDevicesOf } from './rdma.ts'
import { thunderboltPorts } from './thunderbolt-facts.ts'
import { type RawThunderbolt, readThunderboltJson } from './thunderbolt-json.ts'
import { readThunderboltText } from './thunderbolt-text.ts'

export interface ProberComponents {
  readonly name: string
  readonly access: MachineAccess
  readonly nowMs: () => number
  /** Our own process; null when facts are read from captures that do not say. */
  readonly self: { readonly pid: number; readonly uid: number } | null
  readonly runtimePython: string | null
  /** Ranks that a supervisor of ours holds; null when there is none to ask. */
  readonly expectedRankPids?: () => readonly number[] | null
  /** Failed starts of a JACCL world since boot, as the supervisor counts them. */
  readonly failedStartsThisBoot?: () => number | null
}

type Outcomes = Readonly<Record<MacCommandName, CommandOutcome>>

export function createMacProber(components: ProberComponents): Prober {
  const { access } = components
  return {
    async probeMachine() {
      let facts = await probeOnce(components)
      for (let attempt = 1; attempt < probeLimits.probeAttemptsMax; attempt++) {
        if (findContradictions(facts).length === 0) break
        facts = await probeOnce(components)
      }
      return facts
    },
    async probePaths(targets) {
      const { argv, timeoutMs } = macCommands.routes
      const table = textOf('netstat', await access.runCommand(argv, { timeoutMs }))
      const context = {
        machine: components.name,
        platform: 'macos' as const,
        access,
        routes: chainFact(table, extras.parseNetstatRoutes),
      }
      return Promise.all(targets.map((target) => probePath(context, target)))
    },
  }
}

async function probeOnce(components: ProberComponents): Promise<MachineFacts> {
  const { access } = components
  const run = ({ argv, timeoutMs }: ProbeCommand): Promise<CommandOutcome> =>
    access.runCommand(argv, { timeoutMs })
  const names = Object.keys(macCommands) as MacCommandName[]
  const [pairs, sharingFile, runtime] = await Promise.all([
    Promise.all(names.map(async (name) => [name, await run(macCommands[name])] as const)),
    access.readText(sharingPreferences),
    probeRuntime(access.runCommand, components.runtimePython),
  ])
  const outcomes = Object.fromEntries(pairs) as Outcomes
  const thunderboltJson = chainFact(
    textOf('system_profiler', outcomes.thunderbolt),
    readThunderboltJson,
  )
  const thunderbolt = thunderboltJson.known
    ? thunderboltJson
    : firstKnown(
        thunderboltJson,
        chainFact(
          textOf('system_profiler', await run(macFallbacks.thunderboltText)),
          readThunderboltText,
        ),
      )
  // A driver that hung once would hang again, so only a missing answer is asked for in another form.
  const devinfo =
    outcomes.ibvDevinfo.kind === 'not-captured'
      ? await run(macFallbacks.ibvDevinfoBrief)
      : outcomes.ibvDevinfo
  const services = await askAddressing(
    chainFact(textOf('networksetup', outcomes.serviceOrder), parseServiceOrder),
    run,
  )
  return assemble(components, outcomes, { sharingFile, runtime, thunderbolt, devinfo, services })
}

/** A service on DHCP without a server changes its address by itself, so Thunderbolt ones are asked. */
async function askAddressing(
  services: Fact<readonly NetworkService[]>,
  run: (command: ProbeCommand) => Promise<CommandOutcome>,
): Promise<Fact<readonly NetworkService[]>> {
  if (!services.known) return services
  const asked = services.value.map(async (service) => {
    if (thunderboltPortNumber(service.hardwarePort) === null) return service
    const outcome = await run(serviceInfoCommand(service.name))
    return { ...service, addressing: chainFact(textOf('networksetup', outcome), parseServiceInfo) }
  })
  return known(await Promise.all(asked))
}

/** "socketfilterfw", whatever folder it lies in. */
const toolName = ({ argv }: ProbeCommand): string => argv[0]?.split('/').at(-1) ?? ''

interface FurtherAnswers {
  readonly sharingFile: ReadOutcome
  readonly runtime: Fact<RuntimeVersions>
  readonly thunderbolt: Fact<RawThunderbolt>
  readonly devinfo: CommandOutcome
  readonly services: Fact<readonly NetworkService[]>
}

function assemble(
  components: ProberComponents,
  outcomes: Outcomes,
  more: FurtherAnswers,
): MachineFacts {
  const text = (name: MacCommandName): Fact<string> =>
    textOf(toolName(macCommands[name]), outcomes[name])
  const { thunderbolt } = more
  const hardwarePorts = chainFact(text('hardwarePorts'), parseHardwarePorts)
  const processes = chainFact(text('processes'), parseProcesses)
  const power = mapFact(text('powerSettings'), parsePowerSettings)
  const software = mapFact(text('swVers'), host.parseSwVers)
  const failedStarts = components.failedStartsThisBoot?.() ?? null
  return {
    name: components.name,
    platform: 'macos',
    observedAtMs: components.nowMs(),
    system: {
      name: chainFact(software, (one) => one.name),
      version: chainFact(software, (one) => one.version),
      build: chainFact(software, (one) => one.build),
      fileVault: chainFact(text('fileVault'), host.parseFileVault),
    },
    ...hostFacts(text, outcomes),
    interfaces: mapFact(chainFact(text('ifconfig'), parseIfconfig), (all) =>
      labelInterfaces(all, hardwarePorts.known ? hardwarePorts.value : []),
    ),
    hardwarePorts,
    routes: chainFact(text('routes'), extras.parseNetstatRoutes),
    thunderbolt: mapFact(thunderbolt, (outline) => thunderboltPorts(outline.buses)),
    rdma: {
      setting: chainFact(text('rdmaSetting'), parseRdmaSetting),
      deviceNames: chainFact(text('ibvDevices'), parseIbvDevices),
      devices: rdmaDevicesOf(more.devinfo),
    },
    services: more.services,
    bridgesConfigured: bridgesOf(outcomes.bridges),
    internetSharing: sharingOf(more.sharingFile, outcomes.sharing),
    firewall: {
      enabled: chainFact(text('firewallState'), extras.parseFirewallState),
      applications: chainFact(text('firewallApplications'), extras.parseFirewallApplications),
    },
    power: {
      sleepMinutes: chainFact(power, (one) => one.sleepMinutes),
      sleepHeldBy: chainFact(power, (one) => one.sleepHeldBy),
      restartAfterPowerLoss: chainFact(power, (one) => one.restartAfterPowerLoss),
      lowPowerMode: chainFact(power, (one) => one.lowPowerMode),
      source: chainFact(text('powerSource'), parsePowerSource),
    },
    launch: launchContextOf(processes, components.self),
    ranks: {
      processes: ranksOf(processes, components.expectedRankPids?.() ?? null),
      failedStartsThisBoot:
        failedStarts === null
          ? unknown('not-applicable', 'no Bushel is running that would count failed starts')
          : known(failedStarts),
    },
    runtime: more.runtime,
    gpus: unknown('not-applicable', 'a Mac has no separate GPU'),
    unfamiliar: thunderbolt.known ? thunderbolt.value.unfamiliar : [],
  }
}

function hostFacts(
  text: (name: MacCommandName) => Fact<string>,
  outcomes: Outcomes,
): Pick<MachineFacts, 'hardware' | 'memory'> {
  const page = chainFact(text('hardware'), host.parseHardwarePage)
  const sysctl = mapFact(partialTextOf('sysctl', outcomes.sysctl), (all) => host.parseSysctl(all))
  const number = (name: string): Fact<number> =>
    chainFact(sysctl, (values) => host.sysctlNumber(values, name))
  const word = (name: string): Fact<string> =>
    chainFact(sysctl, (values) => host.sysctlText(values, name))
  const model = firstKnown(
    chainFact(page, (one) => one.model),
    word('hw.model'),
  )
  return {
    hardware: {
      chip: firstKnown(
        chainFact(page, (one) => one.chip),
        word('machdep.cpu.brand_string'),
      ),
      model,
      modelName: chainFact(page, (one) => one.modelName),
      virtual: mapFact(model, (name) => name.startsWith('VirtualMac')),
      cpuCores: number('hw.physicalcpu'),
      cpuClusters: chainFact(sysctl, host.cpuClusters),
      gpuCores: chainFact(chainFact(text('accelerator'), parseAccelerator), (gpu) => gpu.cores),
    },
    memory: {
      totalBytes: firstKnown(
        number('hw.memsize'),
        chainFact(page, (one) => one.memoryBytes),
      ),
      availableBytes: mapFact(
        chainFact(text('vmStat'), host.parseVmStat),
        (pages) => pages.availableBytes,
      ),
      pressure: chainFact(sysctl, host.memoryPressure),
      wiredLimit: chainFact(sysctl, host.wiredLimit),
      groupLimitBytes: unknown('not-applicable', 'macOS has no control groups'),
      groupCpus: unknown('not-applicable', 'macOS has no control groups'),
    },
  }
}

/** plutil fails when the key is not there, which is how a Mac without any bridge answers. */
function bridgesOf(outcome: CommandOutcome): Fact<readonly ConfiguredBridge[]> {
  if (outcome.kind === 'exited' && /No value at that key path/.test(outcome.stderr))
    return known([])
  return chainFact(textOf('plutil', outcome), extras.parseConfiguredBridges)
}

/** The file appears when sharing is first switched on; without it nothing is shared. */
function sharingOf(file: ReadOutcome, converted: CommandOutcome): Fact<InternetSharing> {
  if (file.kind === 'missing') return known({ enabled: false, devices: [] })
  return chainFact(textOf('plutil', converted), extras.parseInternetSharing)
}
