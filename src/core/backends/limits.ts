// What JACCL and its driver can take, from MLX's own headers and Apple's technote TN3205.
export const jacclLimits = {
  /** MESH_MAX_PEERS in jaccl/mesh_impl.h: arrays of this size stand on the stack of every collective. */
  meshRanksMax: 8,
  /** RING_MAX_CONNS in jaccl/ring_impl.h. */
  ringCablesMax: 4,
  /** Earlier versions never transfer the upper half of each region over several wires. */
  ringMlxVersionMin: '0.32.4',
  /** RDMA over Thunderbolt came with this system. */
  macosVersionMin: '26.2',
} as const

/** Compares "26.4.1" with "26.2" number by number; a text that is no version compares as older. */
export function versionAtLeast(version: string, least: string): boolean {
  const numbers = (text: string): readonly number[] =>
    text.split('.').map((part) => Number.parseInt(part, 10))
  const [have, want] = [numbers(version), numbers(least)]
  if (have.some(Number.isNaN)) return false
  for (const [index, wanted] of want.entries()) {
    const found = have[index] ?? 0
    if (found !== wanted) return found > wanted
  }
  return true
}
