// From an asked-for launch to started ranks: which machines, whether they allow it, the folder to each, which
// world they form, and the environment of every rank.
import { assertNever } from '../../../core/assert.ts'
import type { MachineId } from '../../../core/ids.ts'
import { jacclEnvironment, ringEnvironment } from '../../../core/backends/rank-environment.ts'
import type { RankEnvironment } from '../../../core/backends/rank-environment.ts'
import { isNamed, roster } from '../../../core/cluster/desired.ts'
import { type MachineState, ownRecord } from '../../../core/cluster/state.ts'
import type { LaunchMachine, LaunchWorld } from '../../../core/launch/world.ts'
import { ncclWorld } from '../../../runtime/world-environment.ts'
import type { LaunchSession } from './launch-session.ts'

export interface Candidate extends LaunchMachine {
  readonly id: MachineId
}

export class LaunchRefused extends Error {
  override readonly name = 'LaunchRefused'
}

/** The named machines in the order given; without names, every one that lives and serves, this one first. */
export function chooseMachines(
  state: MachineState,
  names: readonly string[],
): readonly Candidate[] {
  const own = ownRecord(state)
  const known = roster(state.registers)
  const peers = [...state.peers.values()].filter((peer) => known.has(peer.id))
  const all = [
    { id: own.id, name: own.name, platform: own.platform, role: own.role, status: 'alive' },
    ...peers.map(({ id, status, record }) => ({
      id,
      status,
      name: record?.name ?? known.get(id)?.name ?? id,
      platform: record?.platform ?? '',
      role: record?.role ?? 'always',
    })),
  ]
  if (names.length === 0) {
    const serving = all.filter((one) => one.status === 'alive' && one.role !== 'client')
    if (serving.length === 0) throw new LaunchRefused('no machine of this cluster takes launches')
    return [...serving.slice(0, 1), ...serving.slice(1).sort((a, b) => (a.name < b.name ? -1 : 1))]
  }
  const chosen: Candidate[] = []
  for (const name of names) {
    const found = all.find((one) => isNamed({ machine: one.id, name: one.name }, name))
    if (found === undefined)
      throw new LaunchRefused(
        `there is no machine "${name}" in this cluster; there are: ${all.map((one) => one.name).join(', ')}`,
      )
    if (found.status !== 'alive') throw new LaunchRefused(`${found.name} is not reachable now`)
    if (chosen.some((one) => one.id === found.id))
      throw new LaunchRefused(`${found.name} is named twice; a machine runs one rank of a launch`)
    chosen.push(found)
  }
  return chosen
}

/** Machines that hold a JACCL world already: their drivers have no room for a second. */
export function machinesWithJaccl(state: MachineState): readonly string[] {
  const peers = [...state.peers.values()].flatMap(({ record }) => (record === null ? [] : [record]))
  return [ownRecord(state), ...peers]
    .filter((record) =>
      record.holdings.some(({ plan }) => plan.stages.some((stage) => stage.backend === 'jaccl')),
    )
    .map((record) => record.name)
}

/** Addresses are asked of the machines themselves: they know which of theirs the others can reach. */
export async function environmentsOf(
  world: Exclude<LaunchWorld, { kind: 'refused' }>,
  ranks: readonly { readonly id: MachineId; readonly session: LaunchSession }[],
): Promise<readonly RankEnvironment[]> {
  const size = ranks.length
  const [first] = ranks
  const second = ranks[1] ?? first
  if (first === undefined || second === undefined) return []
  switch (world.kind) {
    case 'alone':
      // Nothing of another world may be inherited; MLX makes a group of one by itself.
      return [{ ...ringEnvironment({ rank: 0, addresses: [] }), set: {}, files: [] }]
    case 'ring': {
      const addresses = await Promise.all(
        ranks.map(async ({ session }, rank) => {
          const before = ranks[(rank + size - 1) % size] ?? first
          const { host, port } = await session.reserve(before.id, null)
          return [`${host}:${port}`]
        }),
      )
      return ranks.map((_, rank) => ringEnvironment({ rank, addresses }))
    }
    case 'nccl': {
      const { host, port } = await first.session.reserve(second.id, null)
      return ranks.map((_, rank) => ncclWorld({ rank, size, addresses: [[`${host}:${port}`]] }))
    }
    case 'jaccl': {
      const { matrix, shape, address } = world
      const { port } = await first.session.reserve(second.id, address)
      const rendezvous = { kind: 'coordinator', address, port } as const
      return ranks.map((_, rank) => jacclEnvironment({ rank, matrix, shape, rendezvous }))
    }
    default:
      return assertNever(world)
  }
}
