// /proc and /etc of a Linux machine.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { KiB } from '../../../core/units.ts'
import { wholeLines, wholeNumber } from '../text.ts'

export function parseOsRelease(text: string): {
  readonly name: Fact<string>
  readonly version: Fact<string>
} {
  const value = (key: string): Fact<string> => {
    const line = wholeLines(text).find((one) => one.startsWith(`${key}=`))
    const word = line?.slice(key.length + 1).replaceAll(/^["']|["']$/g, '') ?? ''
    return word === '' ? unknown('not-printed', `/etc/os-release has no ${key}`) : known(word)
  }
  return { name: value('NAME'), version: value('VERSION_ID') }
}

export interface Meminfo {
  readonly totalBytes: Fact<number>
  readonly availableBytes: Fact<number>
}

export function parseMeminfo(text: string): Meminfo {
  const value = (label: string): Fact<number> => {
    const line = wholeLines(text).find((one) => one.startsWith(`${label}:`))
    const kib = wholeNumber(/:\s+(\d+) kB$/.exec(line ?? '')?.[1] ?? '')
    return kib === null ? unknown('not-printed', `/proc/meminfo has no ${label}`) : known(kib * KiB)
  }
  return { totalBytes: value('MemTotal'), availableBytes: value('MemAvailable') }
}

export interface CpuInfo {
  readonly model: Fact<string>
  readonly cores: Fact<number>
}

/** Cores are counted by their ids where the kernel prints them; ARM prints none, so threads count. */
export function parseCpuinfo(text: string): CpuInfo {
  const models = new Set<string>()
  const cores = new Set<string>()
  let processors = 0
  let socket = ''
  for (const line of wholeLines(text)) {
    const [, key = '', value = ''] = /^([^\t:]+)\s*: (.*)$/.exec(line) ?? []
    if (key === 'processor') processors += 1
    else if (key === 'model name') models.add(value.trim())
    else if (key === 'physical id') socket = value
    else if (key === 'core id') cores.add(`${socket}/${value}`)
  }
  const model = [...models].join(' + ')
  const count = cores.size > 0 ? cores.size : processors
  return {
    model: model === '' ? unknown('not-printed', '/proc/cpuinfo names no model') : known(model),
    cores:
      count === 0 ? unknown('not-understood', '/proc/cpuinfo lists no processor') : known(count),
  }
}
