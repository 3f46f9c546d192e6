// networksetup: which interface belongs to which port, the services on them, and one service's addresses.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import {
  type HardwarePort,
  type InterfaceKind,
  type NetworkInterface,
  type NetworkService,
  type ServiceAddressing,
  thunderboltPortNumber,
} from '../../../core/machine-facts/network.ts'
import { wholeLines } from '../text.ts'

export function parseHardwarePorts(text: string): Fact<readonly HardwarePort[]> {
  const ports: HardwarePort[] = []
  let port: string | undefined
  let device: string | undefined
  for (const line of wholeLines(text)) {
    const [, label, value = ''] = /^(Hardware Port|Device|Ethernet Address): (.*)$/.exec(line) ?? []
    if (label === 'Hardware Port') port = value
    else if (label === 'Device') device = value
    if (label !== 'Ethernet Address' || port === undefined || device === undefined) continue
    // A port without an address prints "(null)" or nothing; it is a port all the same.
    const hardwareAddress = /^[0-9a-f:]{17}$/.test(value) ? value : null
    ports.push({ port, device, hardwareAddress })
    port = undefined
    device = undefined
  }
  return ports.length === 0
    ? unknown('not-understood', 'the output of networksetup names no hardware port')
    : known(ports)
}

/** Disabled services carry an asterisk in place of their number. */
export function parseServiceOrder(text: string): Fact<readonly NetworkService[]> {
  const services: NetworkService[] = []
  let open: { name: string; enabled: boolean } | undefined
  let understood = false
  for (const line of wholeLines(text)) {
    const title = /^\((\d+|\*)\) (.+)$/.exec(line)
    if (title !== null) open = { name: title[2] ?? '', enabled: title[1] !== '*' }
    const detail = /^\(Hardware Port: (.*), Device: (.*)\)$/.exec(line)
    if (detail === null || open === undefined) continue
    understood = true
    const device = detail[2] ?? ''
    services.push({
      ...open,
      hardwarePort: detail[1] ?? '',
      device: device === '' ? null : device,
      addressing: unknown('not-applicable', 'only Thunderbolt services are asked'),
    })
    open = undefined
  }
  return understood
    ? known(services)
    : unknown('not-understood', 'the output of networksetup names no service')
}

/** networksetup -getinfo: how a service gets its address. */
export function parseServiceInfo(text: string): Fact<ServiceAddressing> {
  const lines = wholeLines(text)
  const value = (label: string): string | undefined =>
    lines.find((line) => line.startsWith(`${label}: `))?.slice(label.length + 2)
  const words = lines[0]?.trim() ?? ''
  if (words === 'DHCP Configuration') return known({ kind: 'dhcp' })
  const address = value('IP address')
  const mask = value('Subnet mask')
  if (words === 'Manual Configuration' && address !== undefined && mask !== undefined)
    return known({ kind: 'manual', address, mask })
  return words.endsWith('Configuration')
    ? known({ kind: 'other', words })
    : unknown('not-understood', `networksetup -getinfo answered "${words.slice(0, 60)}"`)
}

/** Gives each interface the name and kind of its port. */
export function labelInterfaces(
  interfaces: readonly NetworkInterface[],
  ports: readonly HardwarePort[],
): readonly NetworkInterface[] {
  return interfaces.map((one) => {
    const label = ports.find((port) => port.device === one.name)?.port ?? null
    return { ...one, label, kind: kindOf(one.name, label) }
  })
}

const kindOfPrefix: readonly (readonly [RegExp, InterfaceKind])[] = [
  [/^lo\d/, 'loopback'],
  [/^(utun|ipsec|ppp|gif|stf)\d/, 'tunnel'],
  [/^bridge\d/, 'bridge'],
  [/^(awdl|llw|ap|anpi|vmenet|feth)\d/, 'virtual'],
]

function kindOf(name: string, label: string | null): InterfaceKind {
  const byName = kindOfPrefix.find(([pattern]) => pattern.test(name))
  if (byName !== undefined) return byName[1]
  if (label === null) return 'unknown'
  if (thunderboltPortNumber(label) !== null) return 'thunderbolt'
  if (/^(Wi-Fi|AirPort|WLAN)$/.test(label)) return 'wifi'
  if (/Ethernet|\bLAN\b|10GbE/i.test(label)) return 'ethernet'
  return 'unknown'
}
