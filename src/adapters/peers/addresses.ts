// Addresses as sockets show them, made plain and complete.

/** A dual-stack socket shows IPv4 addresses in IPv6 clothes. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/i, '')
}

/** A link-local address means nothing without its interface. */
export function withZone(address: string, link: string): string {
  const needsZone = address.toLowerCase().startsWith('fe80:') && !address.includes('%')
  return needsZone ? `${address}%${link}` : address
}

export function sameHost(a: string | undefined, b: string): boolean {
  return a !== undefined && plainAddress(a) === plainAddress(b)
}
