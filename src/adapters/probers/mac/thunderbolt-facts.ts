// Outline of system_profiler → ports, peers and devices, with the traps that the captures showed.
import { type Fact, known, unknown } from '../../../core/machine-facts/fact.ts'
import {
  type PortSpeed,
  type ThunderboltDevice,
  type ThunderboltPeer,
  type ThunderboltPort,
  rdmaProtocolId,
} from '../../../core/machine-facts/thunderbolt.ts'
import { wholeNumber } from '../text.ts'
import type { RawNode, RawServices } from './thunderbolt-raw.ts'

export function thunderboltPorts(buses: readonly RawNode[]): readonly ThunderboltPort[] {
  return buses.map((bus) => {
    const port = bus.port ?? {}
    const occupancy = occupancyOf(port['receptacle_status_key'])
    return {
      bus: bus.name,
      receptacle: receptacleOf(port['receptacle_id_key']),
      domainUuid: printed(bus.values, 'domain_uuid_key'),
      switchUid: switchUidOf(bus.values['switch_uid_key']),
      occupancy,
      speed: speedOf(port['current_speed_key'], occupancy),
      peers: bus.children.flatMap((child) => peersUnder(child, [])),
      devices: bus.children.flatMap(devicesUnder),
    }
  })
}

/** A Mac shows a domain of its own or offers services; docks, disks and displays do neither. */
function isPeer(node: RawNode): boolean {
  return node.values['domain_uuid_key'] !== undefined || node.services !== null
}

function peersUnder(node: RawNode, via: readonly string[]): readonly ThunderboltPeer[] {
  if (!isPeer(node)) return node.children.flatMap((child) => peersUnder(child, [...via, node.name]))
  return [
    {
      name: node.name,
      model: printed(node.values, 'device_name_key'),
      domainUuid: printed(node.values, 'domain_uuid_key'),
      rdmaOffered: rdmaOfferedBy(node.services),
      via,
    },
  ]
}

function devicesUnder(node: RawNode): readonly ThunderboltDevice[] {
  if (isPeer(node) || !node.complete) return []
  const port = node.port ?? {}
  const speed = speedOf(port['current_speed_key'], occupancyOf(port['receptacle_status_key']))
  return [
    {
      name: node.name,
      vendor: node.values['vendor_name_key'] ?? null,
      linkGbps: speed.known ? known(speed.value.gbps) : speed,
    },
    ...node.children.flatMap(devicesUnder),
  ]
}

function rdmaOfferedBy(services: RawServices | null): Fact<boolean> {
  if (services === null) return unknown('not-printed', 'the peer lists no services')
  if (services.protocolIds.includes(rdmaProtocolId)) return known(true)
  if (!services.complete) return unknown('not-printed', "the peer's list of services breaks off")
  return services.protocolIds.includes(null)
    ? unknown('not-printed', "the peer's services are listed without their protocol numbers")
    : known(false)
}

function occupancyOf(text: string | undefined): Fact<'connected' | 'empty'> {
  if (text === 'receptacle_connected') return known('connected')
  if (text === 'receptacle_no_devices_connected') return known('empty')
  return text === undefined
    ? unknown('not-printed', 'the port prints no status')
    : unknown('not-understood', `the port status "${text}" is new to Bushel`)
}

/**
 * "Up to 120 Gb/s" is what an empty port can do, "80 Gb/s" is a link; older systems add " x1". In
 * another language the words differ, so the port's status has the last word on which of both it is.
 */
function speedOf(
  text: string | undefined,
  occupancy: Fact<'connected' | 'empty'>,
): Fact<PortSpeed> {
  if (text === undefined) return unknown('not-printed', 'the port prints no speed')
  const match = /^(.*?)(\d+) Gb\/s(?: x\d)?$/.exec(text)
  if (match === null) return unknown('not-understood', `the speed "${text}" is new to Bushel`)
  const gbps = Number(match[2])
  const upTo = match[1] === 'Up to '
  if (upTo || (occupancy.known && occupancy.value === 'empty'))
    return known({ kind: 'capability', gbps })
  return match[1] === ''
    ? known({ kind: 'link', gbps })
    : unknown('not-understood', `the speed "${text}" is new to Bushel`)
}

function receptacleOf(text: string | undefined): Fact<number> {
  if (text === undefined) return unknown('not-printed', 'the port prints no number')
  const number = wholeNumber(text)
  return number === null
    ? unknown('not-understood', `the port number "${text}" is new to Bushel`)
    : known(number)
}

function switchUidOf(text: string | undefined): Fact<string> {
  if (text === undefined) return unknown('not-printed', '"switch_uid_key" is not in the output')
  const match = /^0x([0-9a-f]{16})$/i.exec(text)
  return match === null
    ? unknown('not-understood', `the switch identity "${text}" is new to Bushel`)
    : known((match[1] ?? '').toUpperCase())
}

function printed(values: Readonly<Record<string, string>>, key: string): Fact<string> {
  const value = values[key]
  return value === undefined || value === ''
    ? unknown('not-printed', `"${key}" is not in the output`)
    : known(value)
}
