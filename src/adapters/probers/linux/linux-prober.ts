// The Linux prober: /proc, /sys, control groups and, where there is one, the NVIDIA driver.
import { type Fact, chainFact, known, mapFact, unknown } from '../../../core/machine-facts/fact.ts'
import { probeLimits } from '../../../core/machine-facts/limits.ts'
import type { MachineFacts } from '../../../core/machine-facts/machine.ts'
import type { Prober } from '../../../ports/prober.ts'
import type { ProberComponents } from '../mac/mac-prober.ts'
import { probeGpus } from '../nvidia/nvidia-prober.ts'
import { textOf, textOfFile } from '../outcome.ts'
import { probePath } from '../paths.ts'
import { launchContextOf, parseProcesses, processListCommand, ranksOf } from '../processes.ts'
import { probeRuntime } from '../runtime-versions.ts'
import { probeGroupLimits } from './cgroups.ts'
import { parseCpuinfo, parseMeminfo, parseOsRelease } from './host.ts'
import { type LinkSettings, probeLinks } from './links.ts'

export interface LinuxProberComponents extends ProberComponents {
  /** Kinds and speeds of interfaces as the owner's config gives them. */
  readonly linkSettings: LinkSettings
}

const onMacsOnly = unknown('not-applicable', 'only Macs have this')

export function createLinuxProber(components: LinuxProberComponents): Prober {
  const { access } = components
  return {
    probeMachine: () => probe(components),
    probePaths: (targets) =>
      Promise.all(
        targets.map((target) =>
          probePath(
            { machine: components.name, platform: 'linux', access, routes: onMacsOnly },
            target,
          ),
        ),
      ),
  }
}

async function probe(components: LinuxProberComponents): Promise<MachineFacts> {
  const { access } = components
  const file = async (path: string): Promise<Fact<string>> =>
    textOfFile(path, await access.readText(path))
  const [release, kernel, cpuText, memoryText, groups, interfaces, gpus, runtime, listed] =
    await Promise.all([
      file('/etc/os-release'),
      file('/proc/sys/kernel/osrelease'),
      file('/proc/cpuinfo'),
      file('/proc/meminfo'),
      probeGroupLimits(access),
      probeLinks(access, components.linkSettings),
      probeGpus(access.runCommand),
      probeRuntime(access.runCommand, components.runtimePython),
      access.runCommand(processListCommand, { timeoutMs: probeLimits.commandTimeoutMs }),
    ])
  const processes = chainFact(textOf('ps', listed), parseProcesses)
  const cpu = mapFact(cpuText, parseCpuinfo)
  const memory = mapFact(memoryText, parseMeminfo)
  const failedStarts = components.failedStartsThisBoot?.() ?? null
  return {
    name: components.name,
    platform: 'linux',
    observedAtMs: components.nowMs(),
    system: {
      name: chainFact(mapFact(release, parseOsRelease), (one) => one.name),
      version: chainFact(mapFact(release, parseOsRelease), (one) => one.version),
      build: mapFact(kernel, (text) => text.trim()),
      fileVault: onMacsOnly,
    },
    hardware: {
      chip: chainFact(cpu, (one) => one.model),
      model: onMacsOnly,
      modelName: onMacsOnly,
      virtual: mapFact(cpuText, (text) => /^flags\s*:.*\bhypervisor\b/m.test(text)),
      cpuCores: chainFact(cpu, (one) => one.cores),
      cpuClusters: onMacsOnly,
      gpuCores: onMacsOnly,
    },
    memory: {
      totalBytes: chainFact(memory, (one) => one.totalBytes),
      availableBytes: chainFact(memory, (one) => one.availableBytes),
      pressure: onMacsOnly,
      wiredLimit: onMacsOnly,
      groupLimitBytes: groups.memoryBytes,
      groupCpus: groups.cpus,
    },
    interfaces,
    hardwarePorts: onMacsOnly,
    routes: onMacsOnly,
    thunderbolt: onMacsOnly,
    rdma: { setting: onMacsOnly, deviceNames: onMacsOnly, devices: onMacsOnly },
    services: onMacsOnly,
    bridgesConfigured: onMacsOnly,
    internetSharing: onMacsOnly,
    firewall: { enabled: onMacsOnly, applications: onMacsOnly },
    power: {
      sleepMinutes: onMacsOnly,
      sleepHeldBy: onMacsOnly,
      restartAfterPowerLoss: onMacsOnly,
      lowPowerMode: onMacsOnly,
      source: onMacsOnly,
    },
    launch: launchContextOf(processes, components.self),
    ranks: {
      processes: ranksOf(processes, components.expectedRankPids?.() ?? null),
      failedStartsThisBoot: failedStarts === null ? onMacsOnly : known(failedStarts),
    },
    runtime,
    gpus,
    unfamiliar: [],
  }
}
