// sw_vers, sysctl, vm_stat, fdesetup and the hardware page of system_profiler.
import { type Fact, chainFact, known, mapFact, unknown } from '../../../core/machine-facts/fact.ts'
import type { CpuCluster, WiredLimit } from '../../../core/machine-facts/machine.ts'
import { GiB, MiB } from '../../../core/units.ts'
import { asArray, asObject, parseJson, stringFact, wholeLines, wholeNumber } from '../text.ts'

export interface SoftwareVersion {
  readonly name: Fact<string>
  readonly version: Fact<string>
  readonly build: Fact<string>
}

export function parseSwVers(text: string): SoftwareVersion {
  const value = (label: string): Fact<string> => {
    const line = wholeLines(text).find((one) => one.startsWith(`${label}:`))
    const word = line?.slice(label.length + 1).trim() ?? ''
    return word === '' ? unknown('not-printed', `sw_vers prints no ${label}`) : known(word)
  }
  return {
    name: value('ProductName'),
    version: value('ProductVersion'),
    build: value('BuildVersion'),
  }
}

export type Sysctl = ReadonlyMap<string, string>

/**
 * Labelled lines ("hw.memsize: 1"). The bare form of "sysctl -n" is read only when it has one line for
 * each name: a name the system does not know prints nothing there and would shift all that follow.
 */
export function parseSysctl(text: string, bareNames: readonly string[] = []): Sysctl {
  const lines = wholeLines(text)
  const values = new Map<string, string>()
  for (const line of lines) {
    const match = /^([a-z][A-Za-z0-9_.]*\.[A-Za-z0-9_.]+): (.*)$/.exec(line)
    if (match === null) continue
    // Setting a value prints "0 -> 114688"; the right one is in force.
    values.set(match[1] ?? '', (match[2] ?? '').split(' -> ').at(-1) ?? '')
  }
  if (values.size === 0 && bareNames.length > 0 && lines.length === bareNames.length)
    for (const [index, name] of bareNames.entries()) values.set(name, lines[index] ?? '')
  return values
}

export function sysctlText(sysctl: Sysctl, name: string): Fact<string> {
  const value = sysctl.get(name)
  return value === undefined || value === ''
    ? unknown('not-printed', `sysctl prints no ${name}`)
    : known(value)
}

export function sysctlNumber(sysctl: Sysctl, name: string): Fact<number> {
  return chainFact(sysctlText(sysctl, name), (text) => {
    const value = wholeNumber(text)
    return value === null
      ? unknown('not-understood', `sysctl prints "${name}: ${text.slice(0, 40)}"`)
      : known(value)
  })
}

/** Kinds of core as the system names them; the string in system_profiler changes with every family. */
export function cpuClusters(sysctl: Sysctl): Fact<readonly CpuCluster[]> {
  return chainFact(sysctlNumber(sysctl, 'hw.nperflevels'), (levels) => {
    const clusters: CpuCluster[] = []
    for (let level = 0; level < Math.min(levels, 8); level++) {
      const cores = sysctlNumber(sysctl, `hw.perflevel${level}.physicalcpu`)
      const name = sysctlText(sysctl, `hw.perflevel${level}.name`)
      if (!cores.known) return cores
      if (!name.known) return name
      clusters.push({ name: name.value, cores: cores.value })
    }
    return known(clusters)
  })
}

export function wiredLimit(sysctl: Sysctl): Fact<WiredLimit> {
  return mapFact(sysctlNumber(sysctl, 'iogpu.wired_limit_mb'), (megabytes) =>
    megabytes === 0
      ? { kind: 'system-default' as const }
      : { kind: 'set' as const, bytes: megabytes * MiB },
  )
}

export function memoryPressure(sysctl: Sysctl): Fact<'normal' | 'warning' | 'critical'> {
  return chainFact(sysctlNumber(sysctl, 'kern.memorystatus_vm_pressure_level'), (level) => {
    const word = ({ 1: 'normal', 2: 'warning', 4: 'critical' } as const)[level]
    return word === undefined
      ? unknown('not-understood', `the memory pressure level ${level} is new to Bushel`)
      : known(word)
  })
}

/** Free, speculative and inactive pages, in the page size that the header gives. */
export function parseVmStat(text: string): Fact<{ readonly availableBytes: number }> {
  const pageBytes = wholeNumber(/page size of (\d+) bytes/.exec(text)?.[1] ?? '')
  if (pageBytes === null) return unknown('not-understood', 'vm_stat prints no page size')
  const lines = wholeLines(text)
  const pages = (label: string): number | null => {
    const line = lines.find((one) => one.startsWith(`Pages ${label}:`))
    return wholeNumber(/(\d+)\.$/.exec(line ?? '')?.[1] ?? '')
  }
  const counts = [pages('free'), pages('inactive'), pages('speculative')]
  return counts.some((count) => count === null)
    ? unknown('not-printed', 'vm_stat does not list free, inactive and speculative pages')
    : known({ availableBytes: counts.reduce<number>((sum, n) => sum + (n ?? 0), 0) * pageBytes })
}

export interface HardwarePage {
  readonly chip: Fact<string>
  readonly model: Fact<string>
  readonly modelName: Fact<string>
  readonly memoryBytes: Fact<number>
}

/** number_processors is left alone on purpose: its form changes between systems and in VMs. */
export function parseHardwarePage(text: string): Fact<HardwarePage> {
  return chainFact(parseJson('system_profiler', text), (json) => {
    const page = asObject(asArray(asObject(json)?.['SPHardwareDataType'])?.[0])
    if (page === null) return unknown('not-understood', 'the output has no "SPHardwareDataType"')
    return known({
      chip: stringFact(page, 'chip_type'),
      model: stringFact(page, 'machine_model'),
      modelName: stringFact(page, 'machine_name'),
      memoryBytes: chainFact(stringFact(page, 'physical_memory'), (memory) => {
        const match = /^(\d+) (GB|TB)$/.exec(memory)
        return match === null
          ? unknown('not-understood', `the memory "${memory}" is new to Bushel`)
          : known(Number(match[1]) * (match[2] === 'TB' ? 1024 : 1) * GiB)
      }),
    })
  })
}

export function parseFileVault(text: string): Fact<'on' | 'off'> {
  if (/^FileVault is On\./m.test(text)) return known('on')
  if (/^FileVault is Off\./m.test(text)) return known('off')
  return unknown('not-understood', `fdesetup answered "${text.trim().slice(0, 60)}"`)
}
