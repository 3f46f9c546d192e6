// Worlds beyond the plain ring: what JACCL and NCCL want to find in a rank's environment.
import type { DeviceMatrix } from '../core/backends/device-matrix.ts'
import { type RankEnvironment, jacclEnvironment } from '../core/backends/rank-environment.ts'

interface World {
  readonly rank: number
  readonly size: number
  /** Of each rank; the first one's is where they meet. */
  readonly addresses: readonly (readonly string[])[]
}

export function jacclWorld(world: World, devices: DeviceMatrix): RankEnvironment {
  const { address, port } = meeting(world)
  // In a mesh every rank has a cable to every other; in a ring only to its neighbours.
  const isMesh = devices.every((row, from) =>
    row.every((device, to) => from === to || device !== null),
  )
  return jacclEnvironment({
    rank: world.rank,
    matrix: devices,
    shape: isMesh ? 'mesh' : 'ring',
    rendezvous: { kind: 'coordinator', address, port },
  })
}

export function ncclWorld(world: World): RankEnvironment {
  const { address, port } = meeting(world)
  const set = {
    MLX_RANK: String(world.rank),
    MLX_WORLD_SIZE: String(world.size),
    NCCL_HOST_IP: address,
    NCCL_PORT: String(port),
  }
  return { set, unset: [], files: [] }
}

function meeting({ addresses }: World): { address: string; port: number } {
  const [address = '', port = '0'] = (addresses[0]?.[0] ?? '').split(':')
  return { address, port: Number(port) }
}
