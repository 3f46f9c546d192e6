// Interfaces, services and routes of a machine, Mac or Linux, in one shape.
import type { Fact } from './fact.ts'
import type { Ipv4Address } from './ipv4.ts'

export type InterfaceKind =
  | 'thunderbolt'
  | 'ethernet'
  | 'wifi'
  | 'bridge'
  | 'virtual'
  | 'tunnel'
  | 'loopback'
  | 'unknown'

export interface NetworkInterface {
  readonly name: string
  readonly kind: InterfaceKind
  /** Where the kind comes from: the system, or the owner's config (link kinds on Linux). */
  readonly kindFrom: 'system' | 'config'
  /** "Thunderbolt 3", "Wi-Fi": the hardware port on a Mac. */
  readonly label: string | null
  readonly hardwareAddress: string | null
  readonly ipv4: readonly Ipv4Address[]
  readonly ipv6: readonly string[]
  readonly mtu: number | null
  readonly active: Fact<boolean>
  readonly speedMbps: Fact<number>
  readonly duplex: Fact<'full' | 'half'>
  /** Interfaces that this one, being a bridge, holds together. */
  readonly members: readonly string[]
  /** False when the listing broke off inside this block, so that a missing line proves nothing. */
  readonly complete: boolean
}

export interface HardwarePort {
  /** "Thunderbolt 3", "Wi-Fi", "Ethernet Adapter (en4)". */
  readonly port: string
  readonly device: string
  readonly hardwareAddress: string | null
}

/** The number in "Thunderbolt 3"; null for the bridge and every other kind of port. */
export function thunderboltPortNumber(port: string): number | null {
  const match = /^Thunderbolt (\d+)$/.exec(port)
  return match === null ? null : Number(match[1])
}

export interface NetworkService {
  readonly name: string
  readonly enabled: boolean
  readonly hardwarePort: string
  readonly device: string | null
  /** How it gets its address; asked for Thunderbolt services alone. */
  readonly addressing: Fact<ServiceAddressing>
}

export type ServiceAddressing =
  | { readonly kind: 'dhcp' }
  | { readonly kind: 'manual'; readonly address: string; readonly mask: string }
  | { readonly kind: 'other'; readonly words: string }

export interface Route {
  /** "192.168.0.0/30", "0.0.0.0/0" for the default. */
  readonly subnet: string
  readonly gateway: string
  readonly interface: string
}

export interface InternetSharing {
  readonly enabled: boolean
  readonly devices: readonly string[]
}

export interface FirewallFacts {
  readonly enabled: Fact<boolean>
  readonly applications: Fact<readonly FirewallApplication[]>
}

export interface FirewallApplication {
  readonly path: string
  readonly incoming: 'allow' | 'block'
}
