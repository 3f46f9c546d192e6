// The ranks of a probed world as jobs for their machines, which say themselves where they can be met.
import type { MachineId } from '../../core/ids.ts'
import type { ProbedWorld } from '../../core/plan/probe/rounds.ts'
import type { ProbePlace, WorldJob } from '../../wire/probe-job.ts'

export interface ProbedRank {
  readonly id: MachineId
  readonly place: (place: ProbePlace) => Promise<{ host: string; port: number }>
}

/** In the order of the world's ranks. */
export async function worldJobs(
  world: ProbedWorld,
  ranks: readonly ProbedRank[],
): Promise<readonly { readonly machine: MachineId; readonly job: WorldJob }[]> {
  const [first, second] = ranks
  if (first === undefined || second === undefined) return []
  if (world.kind === 'ring') {
    // A ring's rank is dialled by the one before it.
    const hosts = await Promise.all(
      ranks.map(({ place }, rank) =>
        place({ facing: (ranks.at(rank - 1) ?? first).id, address: null }),
      ),
    )
    return ranks.map(({ id }, rank) => ({
      machine: id,
      job: { kind: 'world', backend: 'ring', rank, hosts },
    }))
  }
  const { shape, address } = world
  const coordinator = await first.place({ facing: second.id, address })
  const matrix = world.matrix.map((row) =>
    row.map((cell) => (typeof cell === 'string' || cell === null ? cell : [...cell])),
  )
  return ranks.map(({ id }, rank) => ({
    machine: id,
    job: { kind: 'world', backend: 'jaccl', rank, shape, matrix, coordinator },
  }))
}
