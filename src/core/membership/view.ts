// Which machines hear each other in both directions, and which of them coordinates.
import { roster } from '../cluster/desired.ts'
import { type Epoch, type Role, compareEpochs } from '../cluster/record.ts'
import type { MachineState } from '../cluster/state.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'
import { planted } from '../planted.ts'

/** Machines this one hears and is heard by, itself included. Plans may be sent to these. */
export function reachable(state: MachineState): ReadonlySet<MachineId> {
  const found = new Set([state.self.id])
  for (const peer of state.peers.values()) {
    if (peer.status !== 'dead' && peer.hears.includes(state.self.id)) found.add(peer.id)
  }
  return found
}

/** All machines joined to this one by a chain of two-way links among those it hears, sorted. */
export function component(state: MachineState): readonly MachineId[] {
  const hears = new Map<MachineId, ReadonlySet<MachineId>>()
  const heard = new Set<MachineId>()
  for (const peer of state.peers.values()) {
    if (peer.status === 'dead') continue
    heard.add(peer.id)
    hears.set(peer.id, new Set(peer.hears))
  }
  hears.set(state.self.id, heard)
  const found = new Set([state.self.id])
  const frontier = [state.self.id]
  for (let current = frontier.pop(); current !== undefined; current = frontier.pop()) {
    for (const other of hears.get(current) ?? []) {
      if (found.has(other) || hears.get(other)?.has(current) !== true) continue
      found.add(other)
      frontier.push(other)
    }
  }
  return [...found].sort()
}

/** True when a and b hear each other, as far as this machine knows. */
export function hearEachOther(state: MachineState, a: MachineId, b: MachineId): boolean {
  const hears = (listener: MachineId, speaker: MachineId): boolean => {
    if (listener === state.self.id) return isHeard(state, speaker)
    return isHeard(state, listener) && (state.peers.get(listener)?.hears.includes(speaker) ?? false)
  }
  return a === b || (hears(a, b) && hears(b, a))
}

function isHeard(state: MachineState, id: MachineId): boolean {
  const peer = state.peers.get(id)
  return peer !== undefined && peer.status !== 'dead'
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

/**
 * Who coordinates this machine, or null when somebody does whom it cannot hear: a machine between the
 * two follows that one, and two leaders pulling at it would raise epochs against each other for ever.
 */
export function chooseCoordinator(
  state: MachineState,
  members: readonly MachineId[],
): MachineId | null {
  const best = coordinatorOf(state, members)
  if (planted.everyoneLeads) return state.self.id
  if (best !== state.self.id || planted.leadersOutbid) return best
  for (const id of members) {
    const follows = state.peers.get(id)?.follows ?? null
    if (follows !== null && !members.includes(follows)) return null
  }
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
  return id === state.self.id ? state.self.role : (state.peers.get(id)?.role ?? 'sometimes')
}

export function highestEpoch(state: MachineState, members: readonly MachineId[]): Epoch {
  let highest = state.epochSeen
  for (const id of members) {
    const epoch = state.peers.get(id)?.epoch
    if (epoch !== undefined && compareEpochs(epoch, highest) > 0) highest = epoch
  }
  return highest
}

/** In a cluster of one there is nothing to settle. */
export function isAlone(state: MachineState): boolean {
  return state.peers.size === 0 && roster(state.registers).size <= 1
}

/** The one who decides placement now, or null while the view has not settled. */
export function settledCoordinator(state: MachineState, nowMs: number): MachineId | null {
  const { coordinator, sinceMs } = state.view
  return isAlone(state) || nowMs - sinceMs >= limits.viewStableMs ? coordinator : null
}
