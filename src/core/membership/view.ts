// Which machines hear each other in both directions, and which of them coordinates.
import { roster } from '../cluster/desired.ts'
import { type Epoch, type Role, compareEpochs } from '../cluster/record.ts'
import type { MachineState } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'

/** Machines this one hears and is heard by, itself included. Plans may be sent to these. */
export function reachable(state: MachineState): ReadonlySet<MachineId> {
  const found = new Set([state.self.id])
  for (const peer of state.peers.values()) {
    if (peer.status !== 'dead' && peer.hears.includes(state.self.id)) found.add(peer.id)
  }
  return found
}

/** True when a and b hear each other, as far as this machine knows. */
export function hearEachOther(state: MachineState, a: MachineId, b: MachineId): boolean {
  if (a === b) return true
  return hears(state, a, b) && hears(state, b, a)
}

function hears(state: MachineState, listener: MachineId, speaker: MachineId): boolean {
  if (listener === state.self.id) {
    const peer = state.peers.get(speaker)
    return peer !== undefined && peer.status !== 'dead'
  }
  const peer = state.peers.get(listener)
  return peer !== undefined && peer.status !== 'dead' && peer.hears.includes(speaker)
}

/** All machines joined to this one by a chain of two-way links, sorted. */
export function component(state: MachineState): readonly MachineId[] {
  const all = [state.self.id]
  for (const peer of state.peers.values()) if (peer.status !== 'dead') all.push(peer.id)
  const found = new Set([state.self.id])
  const frontier = [state.self.id]
  for (let current = frontier.pop(); current !== undefined; current = frontier.pop()) {
    for (const other of all) {
      if (found.has(other) || !hearEachOther(state, current, other)) continue
      found.add(other)
      frontier.push(other)
    }
  }
  return [...found].sort()
}

const roleRank: Readonly<Record<Role, number>> = { always: 0, sometimes: 1, client: 2 }

/** Always-on before laptops, the holder of the highest epoch before others, then the lowest id. */
export function coordinatorOf(state: MachineState, members: readonly MachineId[]): MachineId {
  const highest = highestEpoch(state, members)
  const rank = (id: MachineId): readonly [number, number, string] => [
    roleRank[roleOf(state, id)],
    highest.machine === id ? 0 : 1,
    id,
  ]
  let best = state.self.id
  for (const id of members) if (isBefore(rank(id), rank(best))) best = id
  return best
}

function isBefore(
  a: readonly [number, number, string],
  b: readonly [number, number, string],
): boolean {
  if (a[0] !== b[0]) return a[0] < b[0]
  if (a[1] !== b[1]) return a[1] < b[1]
  return a[2] < b[2]
}

function roleOf(state: MachineState, id: MachineId): Role {
  if (id === state.self.id) return state.self.role
  return state.peers.get(id)?.record?.role ?? 'sometimes'
}

export function highestEpoch(state: MachineState, members: readonly MachineId[]): Epoch {
  let highest = state.epochSeen
  for (const id of members) {
    const epoch = state.peers.get(id)?.epoch
    if (epoch !== undefined && compareEpochs(epoch, highest) > 0) highest = epoch
  }
  return highest
}

/** The one who decides placement now, or null while the view has not settled. */
export function settledCoordinator(state: MachineState, nowMs: number): MachineId | null {
  const alone = roster(state.registers).size <= 1 && state.peers.size === 0
  if (!alone && nowMs - state.view.sinceMs < limits.viewStableMs) return null
  return coordinatorOf(state, state.view.members)
}
