// Firewall, Internet Sharing, bridges in the settings and the routing table.
import { type Fact, chainFact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { ipv4ToNumber } from '../../../core/machine-facts/ipv4.ts'
import type { ConfiguredBridge } from '../../../core/machine-facts/machine.ts'
import type {
  FirewallApplication,
  InternetSharing,
  Route,
} from '../../../core/machine-facts/network.ts'
import { type PlistValue, parsePlist } from '../plist.ts'
import { asArray, asObject, parseJson, wholeLines } from '../text.ts'

/** Each application takes two lines: its path, then what happens to incoming connections. */
export function parseFirewallApplications(text: string): Fact<readonly FirewallApplication[]> {
  const applications: FirewallApplication[] = []
  let path: string | undefined
  for (const line of wholeLines(text)) {
    const title = /^\d+\s*:\s*(.+?)\s*$/.exec(line)?.[1]
    if (title !== undefined) path = title
    const verdict = /\((Allow|Block) incoming connections\)/.exec(line)?.[1]
    if (verdict === undefined || path === undefined) continue
    applications.push({ path, incoming: verdict === 'Allow' ? 'allow' : 'block' })
    path = undefined
  }
  return /^Total number of apps = \d+/m.test(text)
    ? known(applications)
    : unknown('not-understood', 'socketfilterfw prints no list that Bushel knows')
}

export function parseFirewallState(text: string): Fact<boolean> {
  const match = /\(State = (\d)\)/.exec(text)
  return match === null
    ? unknown('not-understood', `socketfilterfw answered "${text.trim().slice(0, 60)}"`)
    : known(match[1] !== '0')
}

/** VirtualNetworkInterfaces.Bridge of the network preferences, as plutil prints it. */
export function parseConfiguredBridges(text: string): Fact<readonly ConfiguredBridge[]> {
  return chainFact(parseJson('plutil', text), (json) => {
    const bridges = asObject(json)
    if (bridges === null) return unknown('not-understood', 'the bridge settings are not an object')
    return known(
      Object.entries(bridges).map(([name, settings]) => ({
        name,
        members: (asArray(asObject(settings)?.['Interfaces']) ?? []).filter(
          (member) => typeof member === 'string',
        ),
      })),
    )
  })
}

/** com.apple.nat, converted to XML by plutil. */
export function parseInternetSharing(text: string): Fact<InternetSharing> {
  return chainFact(parsePlist(text), (root) => {
    const nat = dictionary(dictionary(root)?.get('NAT'))
    if (nat === null) return known({ enabled: false, devices: [] })
    const enabled = nat.get('Enabled')
    if (enabled !== undefined && typeof enabled !== 'number' && typeof enabled !== 'boolean')
      return unknown('not-understood', 'the sharing settings hold no "Enabled" that Bushel knows')
    const devices = nat.get('SharingDevices')
    return known({
      enabled: enabled === true || (typeof enabled === 'number' && enabled !== 0),
      devices: Array.isArray(devices) ? devices.filter((one) => typeof one === 'string') : [],
    })
  })
}

function dictionary(value: PlistValue | undefined): ReadonlyMap<string, PlistValue> | null {
  return value instanceof Map ? value : null
}

export function parseNetstatRoutes(text: string): Fact<readonly Route[]> {
  const lines = wholeLines(text)
  const header = lines.findIndex((line) => /^Destination\s+Gateway\s+Flags/.test(line))
  if (header === -1)
    return unknown('not-understood', 'the output of netstat has no table that Bushel knows')
  return known(
    lines.slice(header + 1).flatMap((line) => {
      const [destination = '', gateway = '', , netif = ''] = line.trim().split(/\s+/)
      const subnet = subnetOfDestination(destination)
      return subnet === null || netif === '' ? [] : [{ subnet, gateway, interface: netif }]
    }),
  )
}

/** netstat drops trailing zero octets: "192.0.2" is a /24, "169.254" a /16, "100.64/10" says its own. */
function subnetOfDestination(destination: string): string | null {
  if (destination === 'default') return '0.0.0.0/0'
  const match = /^(\d+(?:\.\d+){0,3})(?:\/(\d+))?$/.exec(destination)
  if (match === null) return null
  const octets = (match[1] ?? '').split('.')
  const prefixLength = match[2] === undefined ? octets.length * 8 : Number(match[2])
  const address = [...octets, '0', '0', '0'].slice(0, 4).join('.')
  return ipv4ToNumber(address) === null || prefixLength > 32 ? null : `${address}/${prefixLength}`
}

export function parseRouteGet(text: string): Fact<string> {
  const name = wholeLines(text).flatMap((line) => /^\s*interface: (\S+)$/.exec(line)?.[1] ?? [])[0]
  return name === undefined ? unknown('not-printed', 'route prints no interface') : known(name)
}
