// Hostfiles as mlx.launch and mlx.distributed_config write and read them.
import type { DeviceMatrix } from './device-matrix.ts'

export interface MlxHostfile {
  readonly backend: 'ring' | 'jaccl' | 'jaccl-ring'
  readonly envs: readonly string[]
  readonly hosts: readonly MlxHost[]
}

export interface MlxHost {
  readonly ssh: string
  readonly ips: readonly string[]
  readonly rdma: DeviceMatrix[number]
}

/** Four spaces, as MLX writes it, so that files can be compared. */
export function renderHostfile(hostfile: MlxHostfile): string {
  return `${JSON.stringify(hostfile, null, 4)}\n`
}

/**
 * The file that a ring rank itself reads (MLX_HOSTFILE): addresses with ports, by rank. Ports count up
 * over all ranks and addresses, as mlx.launch counts them.
 */
export function ringRankFile(
  hosts: readonly { readonly ips: readonly string[] }[],
  firstPort: number,
): readonly (readonly string[])[] {
  let port = firstPort
  return hosts.map((host) => host.ips.map((ip) => `${ip}:${port++}`))
}
