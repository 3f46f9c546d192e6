// The network interfaces of this machine, and which of them an address belongs to.
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'

export interface LinkAddress {
  readonly link: string
  readonly address: string
  readonly family: 'IPv4' | 'IPv6'
  readonly netmask: string
  readonly isLinkLocal: boolean
}

type Interfaces = NodeJS.Dict<NetworkInterfaceInfo[]>

/** Every address a peer could share a link with: no loopback, no tunnels to elsewhere. */
export function linkAddresses(all: Interfaces = networkInterfaces()): readonly LinkAddress[] {
  const found: LinkAddress[] = []
  for (const [link, infos] of Object.entries(all)) {
    for (const { address, family, netmask, internal } of infos ?? []) {
      if (internal || isTunnel(link)) continue
      const isLinkLocal = family === 'IPv6' && address.toLowerCase().startsWith('fe80:')
      // Global IPv6 addresses come and go; the link-local one is always there and names its link exactly.
      if (family === 'IPv6' && !isLinkLocal) continue
      found.push({ link, address, family, netmask, isLinkLocal })
    }
  }
  return found
}

function isTunnel(link: string): boolean {
  return /^(utun|awdl|llw|anpi|ap\d|gif|stf|docker|br-|virbr|tailscale|wg|zt)/.test(link)
}

/** The interface that owns a local address; "lo" for loopback, null when none does any more. */
export function linkOf(localAddress: string, all: Interfaces = networkInterfaces()): string | null {
  const zone = /%(.+)$/.exec(localAddress)?.[1]
  if (zone !== undefined) return zone
  const plain = localAddress.replace(/^::ffff:/i, '')
  for (const [link, infos] of Object.entries(all)) {
    if (infos?.some((info) => info.address === plain))
      return infos.some((info) => info.internal) ? 'lo' : link
  }
  return null
}

/** The address of ours on whose link the peer's address lies, so that a dial really takes that link. */
export function localAddressFor(remote: string, all: readonly LinkAddress[]): LinkAddress | null {
  const zone = /%(.+)$/.exec(remote)?.[1]
  if (zone !== undefined) return all.find((mine) => mine.link === zone && mine.isLinkLocal) ?? null
  return (
    all.find((mine) => mine.family === 'IPv4' && sameSubnet(mine.address, remote, mine.netmask)) ??
    null
  )
}

export function sameSubnet(a: string, b: string, netmask: string): boolean {
  const mask = ipv4Number(netmask)
  const left = ipv4Number(a)
  const right = ipv4Number(b)
  return (
    mask !== null && left !== null && right !== null && (left & mask) >>> 0 === (right & mask) >>> 0
  )
}

function ipv4Number(text: string): number | null {
  const parts = text.split('.').map(Number)
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255))
    return null
  return parts.reduce((sum, part) => ((sum << 8) | part) >>> 0, 0)
}
