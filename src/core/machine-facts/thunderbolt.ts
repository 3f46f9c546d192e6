// What a Mac says about its Thunderbolt ports and what hangs on each of them.
import { type Fact, known, unknown } from './fact.ts'

/** The service that a peer offers when its RDMA is on (0xFA57). Its printed name varies by macOS. */
export const rdmaProtocolId = 64087

export interface ThunderboltPort {
  /** As system_profiler names the bus; ports print in descending order, so this is no port number. */
  readonly bus: string
  /** The number on the port: "Thunderbolt 3". */
  readonly receptacle: Fact<number>
  readonly domainUuid: Fact<string>
  /** Sixteen upper-case hex digits, without 0x. */
  readonly switchUid: Fact<string>
  readonly occupancy: Fact<'connected' | 'empty'>
  readonly speed: Fact<PortSpeed>
  /** Macs seen through this port, directly or behind a dock. */
  readonly peers: readonly ThunderboltPeer[]
  /** Docks, disks and displays seen through this port. */
  readonly devices: readonly ThunderboltDevice[]
}

export type PortSpeed =
  /** "Up to 120 Gb/s": what an empty port can do. */
  | { readonly kind: 'capability'; readonly gbps: number }
  /** "80 Gb/s": what the link in it runs at. */
  | { readonly kind: 'link'; readonly gbps: number }

export interface ThunderboltPeer {
  /** The model as people know it: "Mac Studio". */
  readonly name: string
  /** "Mac15,14". */
  readonly model: Fact<string>
  readonly domainUuid: Fact<string>
  /** Whether the peer offers RDMA: its own switch, seen from this side without logging in there. */
  readonly rdmaOffered: Fact<boolean>
  /** Docks between this port and the peer, nearest first. Empty means one cable. */
  readonly via: readonly string[]
}

export interface ThunderboltDevice {
  readonly name: string
  readonly vendor: string | null
  readonly linkGbps: Fact<number>
}

export type ThunderboltGeneration = 4 | 5

/** Chips whose ports are Thunderbolt 5: only those that a capture or Apple's own page shows. */
const thunderbolt5Chips: ReadonlySet<string> = new Set([
  'Apple M4 Pro',
  'Apple M4 Max',
  'Apple M3 Ultra',
  'Apple M5 Max',
])

/** Chips whose ports are at most Thunderbolt 4: RDMA is not possible there, whatever the switch says. */
const thunderbolt4Chips: ReadonlySet<string> = new Set([
  'Apple M1',
  'Apple M1 Pro',
  'Apple M1 Max',
  'Apple M1 Ultra',
  'Apple M2',
  'Apple M2 Pro',
  'Apple M2 Max',
  'Apple M2 Ultra',
  'Apple M3',
  'Apple M3 Pro',
  'Apple M3 Max',
  'Apple M4',
  'Apple M5',
])

/**
 * An empty port tells its capability; a port in use tells only the link, which a slow device holds
 * down. So one fast port proves Thunderbolt 5, one empty slow port proves Thunderbolt 4, and where
 * every port runs a slow link the chip decides.
 */
export function thunderboltGeneration(
  ports: readonly ThunderboltPort[],
  chip: Fact<string>,
): Fact<ThunderboltGeneration> {
  const speeds = ports.flatMap((port) => (port.speed.known ? [port.speed.value] : []))
  if (speeds.some((speed) => speed.gbps >= 80)) return known(5)
  if (speeds.some((speed) => speed.kind === 'capability' && speed.gbps > 0)) return known(4)
  if (chip.known && thunderbolt5Chips.has(chip.value)) return known(5)
  if (chip.known && thunderbolt4Chips.has(chip.value)) return known(4)
  return unknown(
    'not-printed',
    ports.length === 0
      ? 'no Thunderbolt port is listed'
      : 'every port runs a slow link and the chip is not in the table',
  )
}

/** node_guid of ibv_devinfo is the port's switch UID with its bytes reversed. */
export function switchUidOfNodeGuid(nodeGuid: string): string | null {
  const digits = nodeGuid.replaceAll(':', '').toUpperCase()
  if (!/^[0-9A-F]{16}$/.test(digits)) return null
  return (digits.match(/../g) ?? []).toReversed().join('')
}
