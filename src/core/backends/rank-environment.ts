// The environment and files that make a process one rank of a world. JACCL prefers its own names over
// MLX's, so leftovers of either kind in the inherited environment are named for removal.
import type { DeviceMatrix } from './device-matrix.ts'

export interface RankEnvironment {
  readonly set: Readonly<Record<string, string>>
  /** Variables of MLX that must not be inherited. */
  readonly unset: readonly string[]
  /** Files that the launcher writes; each variable gets the path of its file. */
  readonly files: readonly { readonly variable: string; readonly content: string }[]
}

/** Who carries the first exchange of a JACCL world: our own control plane, or a TCP port of rank 0. */
export type Rendezvous =
  | { readonly kind: 'control-plane' }
  | { readonly kind: 'coordinator'; readonly address: string; readonly port: number }

const groupVariables = [
  'MLX_RANK',
  'MLX_WORLD_SIZE',
  'MLX_HOSTFILE',
  'MLX_RING_VERBOSE',
  'MLX_IBV_DEVICES',
  'MLX_JACCL_COORDINATOR',
  'MLX_JACCL_RING',
  'JACCL_RANK',
  'JACCL_IBV_DEVICES',
  'JACCL_COORDINATOR',
  'JACCL_RING',
  // Faster, but can leave the GPU stuck until a restart; whoever wants it sets it knowingly.
  'MLX_METAL_FAST_SYNCH',
] as const

export function jacclEnvironment(world: {
  readonly rank: number
  readonly matrix: DeviceMatrix
  readonly shape: 'mesh' | 'ring'
  readonly rendezvous: Rendezvous
}): RankEnvironment {
  const set: Record<string, string> = { MLX_RANK: String(world.rank) }
  if (world.rendezvous.kind === 'coordinator')
    set['MLX_JACCL_COORDINATOR'] = `${world.rendezvous.address}:${world.rendezvous.port}`
  if (world.shape === 'ring') set['MLX_JACCL_RING'] = '1'
  return {
    set,
    unset: without(set),
    files: [{ variable: 'MLX_IBV_DEVICES', content: JSON.stringify(world.matrix) }],
  }
}

export function ringEnvironment(world: {
  readonly rank: number
  readonly addresses: readonly (readonly string[])[]
}): RankEnvironment {
  const set = { MLX_RANK: String(world.rank) }
  return {
    set,
    unset: without(set),
    files: [{ variable: 'MLX_HOSTFILE', content: JSON.stringify(world.addresses) }],
  }
}

function without(set: Readonly<Record<string, string>>): readonly string[] {
  return groupVariables.filter((name) => set[name] === undefined)
}
