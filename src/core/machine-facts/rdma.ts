// What a Mac says about RDMA over Thunderbolt: the switch, the devices, their ports and addresses.
import type { Fact } from './fact.ts'

export interface RdmaFacts {
  /** rdma_ctl status. Only Recovery can change it. */
  readonly setting: Fact<'enabled' | 'disabled'>
  /** Names from ibv_devices, in its own arbitrary order. An empty list is an answer. */
  readonly deviceNames: Fact<readonly string[]>
  /** ibv_devinfo; a driver that is wedged makes it hang, which is unknown "timed-out" here. */
  readonly devices: Fact<readonly RdmaDevice[]>
}

export interface RdmaDevice {
  /** "rdma_en3". */
  readonly name: string
  readonly nodeGuid: Fact<string>
  readonly portState: Fact<'active' | 'down' | 'other'>
  /** Equals the number on the Thunderbolt port. */
  readonly portLid: Fact<number>
  readonly queuePairsMax: Fact<number>
  readonly memoryRegionsMax: Fact<number>
  /** Addresses as printed; indexes can skip. Printed by -v alone. */
  readonly gids: readonly Gid[]
  /** True when the block was printed to its end with addresses, so that a missing one is missing. */
  readonly gidsComplete: boolean
}

export interface Gid {
  readonly index: number
  readonly address: string
}

/** JACCL connects from this index whatever is there, so the port's IPv4 address has to sit on it. */
export const jacclGidIndex = 1

export function ipv4OfGid(gid: Gid): string | null {
  const match = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(gid.address)
  return match?.[1] ?? null
}

export function interfaceOfRdmaDevice(device: string): string | null {
  return /^rdma_(.+)$/.exec(device)?.[1] ?? null
}
