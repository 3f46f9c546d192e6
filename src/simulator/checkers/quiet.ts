// What the checkers of liveness look up: what is wanted and what is ready in truth, whatever machines say.
import { type WantedDeployment, wantedDeployments } from '../../core/cluster/desired.ts'
import type { World } from '../world.ts'

export function wantedNow(world: World): readonly WantedDeployment[] {
  const registers = world.hosts.find((host) => host.isRunning)?.life?.machine.state.registers
  return registers === undefined ? [] : wantedDeployments(registers)
}

/** Groups of a model all of whose ranks are up and ready. */
export function readyGroups(world: World, model: string): number {
  const ranks = new Map<string, { ready: number; size: number }>()
  for (const { load, phase, bond } of world.farm.living) {
    if (load.model.name !== model) continue
    // Ranks of one formation share a secret; one left over from an earlier formation counts for nothing.
    const formation = ranks.get(bond.secret) ?? { ready: 0, size: load.stage.count }
    if (phase === 'ready') formation.ready += 1
    ranks.set(bond.secret, formation)
  }
  return [...ranks.values()].filter(({ ready, size }) => ready === size).length
}

/** Groups that a deployment should have: its replicas, and a spare where one is asked for. */
export function groupsWanted({ replicas, standby }: WantedDeployment): number {
  return replicas + (standby ? 1 : 0)
}
