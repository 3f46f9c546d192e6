// The text form of system_profiler SPThunderboltDataType → the same outline as the JSON form. People
// paste this one into reports. It is localised: in another language no bus is recognised, and we say so.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { wholeLines, wholeNumber } from '../text.ts'
import type { RawThunderbolt } from './thunderbolt-json.ts'

const keyOfLabel: Readonly<Record<string, string>> = {
  'Current Link Width': 'current_link_width_key',
  'Device ID': 'device_id_key',
  'Device Name': 'device_name_key',
  'Device Revision': 'device_revision_key',
  'Domain UUID': 'domain_uuid_key',
  'Firmware Version': 'switch_version_key',
  'Link Controller Firmware Version': 'lc_version_key',
  'Link Status': 'link_status_key',
  'Micro Firmware Version': 'micro_version_key',
  Mode: 'mode_key',
  Receptacle: 'receptacle_id_key',
  'Route String': 'route_string_key',
  Speed: 'current_speed_key',
  Status: 'receptacle_status_key',
  UID: 'switch_uid_key',
  'Vendor ID': 'vendor_id_key',
  'Vendor Name': 'vendor_name_key',
}

const statusOfText: Readonly<Record<string, string>> = {
  'Device connected': 'receptacle_connected',
  'No device connected': 'receptacle_no_devices_connected',
}

/** A node while its lines are still being read. */
interface OpenNode {
  readonly indent: number
  readonly name: string
  readonly values: Record<string, string>
  port: Record<string, string> | null
  services: { protocolIds: (number | null)[]; complete: boolean } | null
  complete: boolean
  readonly children: OpenNode[]
}

type Section = 'none' | 'port' | 'services'

export function readThunderboltText(text: string): Fact<RawThunderbolt> {
  const buses: OpenNode[] = []
  const unfamiliar = new Set<string>()
  let path: OpenNode[] = []
  let section: Section = 'none'
  for (const line of wholeLines(text)) {
    const node = path.at(-1)
    if (line.trim() === '') {
      if (section === 'services' && node?.services) node.services.complete = true
      if (node !== undefined && Object.keys(node.values).length > 0) node.complete = true
      section = 'none'
      continue
    }
    const indent = line.length - line.trimStart().length
    const heading = /^(.*):$/.exec(line.trim())?.[1]
    if (heading === undefined) {
      if (node !== undefined) readProperty(line.trim(), { node, section, unfamiliar })
    } else if (node !== undefined && heading === 'Services') {
      node.services = { protocolIds: [], complete: false }
      section = 'services'
    } else if (node !== undefined && /^Port\b/.test(heading)) {
      // Further sockets of a dock are listed as "Port" too; the first one is the way in.
      node.port ??= {}
      section = 'port'
    } else if (section === 'services' && node?.services) {
      node.services.protocolIds.push(null)
    } else {
      path = openNode({ path, indent, heading, buses })
      section = 'none'
    }
  }
  if (buses.length === 0)
    return unknown(
      'not-understood',
      'no Thunderbolt bus is in the text (the system may speak another language)',
    )
  return known({ buses, unfamiliar: [...unfamiliar].toSorted() })
}

function openNode(at: {
  readonly path: readonly OpenNode[]
  readonly indent: number
  readonly heading: string
  readonly buses: OpenNode[]
}): OpenNode[] {
  const isBus = /^Thunderbolt(?:\/USB4)? Bus \d+$/.test(at.heading)
  const parents = isBus ? [] : at.path.filter((node) => node.indent < at.indent)
  const node: OpenNode = {
    indent: at.indent,
    name: isBus ? at.heading.replaceAll('/', '').replaceAll(' ', '_').toLowerCase() : at.heading,
    values: {},
    port: null,
    services: null,
    complete: false,
    children: [],
  }
  const parent = parents.at(-1)
  if (isBus) at.buses.push(node)
  else if (parent === undefined) return []
  else parent.children.push(node)
  return [...parents, node]
}

function readProperty(
  line: string,
  into: { readonly node: OpenNode; readonly section: Section; readonly unfamiliar: Set<string> },
): void {
  const match = /^([^:]+): (.*)$/.exec(line)
  if (match === null) return
  const [, label = '', value = ''] = match
  if (into.section === 'services') {
    const ids = into.node.services?.protocolIds
    if (label === 'Protocol ID' && ids !== undefined && ids.length > 0)
      ids[ids.length - 1] = wholeNumber(value)
    return
  }
  const key = keyOfLabel[label]
  if (key === undefined) {
    into.unfamiliar.add(`SPThunderboltDataType "${label}"`)
    return
  }
  if (into.section === 'port' && into.node.port !== null)
    into.node.port[key] ??= statusOfText[value] ?? value
  else into.node.values[key] = value
}
