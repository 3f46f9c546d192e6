// IPv4 arithmetic for subnets and cables. Addresses stay strings outside; numbers live only in here.

export interface Ipv4Address {
  readonly address: string
  readonly prefixLength: number
}

/** The address as a number, or null when the text is not four octets. */
export function ipv4ToNumber(text: string): number | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (match === null) return null
  const octets = match.slice(1).map(Number)
  if (octets.some((octet) => octet > 255)) return null
  return octets.reduce((sum, octet) => sum * 256 + octet, 0)
}

export function numberToIpv4(value: number): string {
  const octet = (shift: number): number => Math.floor(value / 2 ** shift) % 256
  return `${octet(24)}.${octet(16)}.${octet(8)}.${octet(0)}`
}

/** Reads 0xfffffffc, the way ifconfig prints a netmask; null when the bits are not one run of ones. */
export function prefixLengthOfHexMask(text: string): number | null {
  if (!/^0x[0-9a-f]{8}$/i.test(text)) return null
  const bits = Number.parseInt(text.slice(2), 16).toString(2).padStart(32, '0')
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : null
}

export function dottedMask(prefixLength: number): string {
  return numberToIpv4(2 ** 32 - 2 ** (32 - prefixLength))
}

/** The network's own address: 192.168.0.1/30 → 192.168.0.0/30. Two equal texts are one subnet. */
export function subnetOf(ip: Ipv4Address): string {
  const value = ipv4ToNumber(ip.address)
  if (value === null) return ip.address
  const size = 2 ** (32 - ip.prefixLength)
  return `${numberToIpv4(Math.floor(value / size) * size)}/${ip.prefixLength}`
}

export function subnetsOverlap(pair: {
  readonly a: Ipv4Address
  readonly b: Ipv4Address
}): boolean {
  const prefixLength = Math.min(pair.a.prefixLength, pair.b.prefixLength)
  return (
    subnetOf({ address: pair.a.address, prefixLength }) ===
    subnetOf({ address: pair.b.address, prefixLength })
  )
}

/** 169.254/16: given by the machine to itself, late, and anew after each replug. */
export function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.')
}

export function isLoopback(address: string): boolean {
  return address.startsWith('127.')
}
