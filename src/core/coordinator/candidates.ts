// The machines that may be given ranks now, with what they really have left.
import { isDrained } from '../cluster/desired.ts'
import type { MachineRecord } from '../cluster/record.ts'
import { type MachineState, drainedReason, ownRecord } from '../cluster/state.ts'
import { reachable } from '../membership/view.ts'

/** Machines that may be given ranks now: heard in both directions, with a record that says what they have. */
export function candidateRecords(state: MachineState): readonly MachineRecord[] {
  const near = reachable(state)
  const found = [ownRecord(state)]
  for (const peer of state.peers.values()) {
    if (peer.status === 'alive' && peer.record !== null && near.has(peer.id))
      found.push(peer.record)
  }
  return found.map((record) => withoutDrained(state, withoutPromised(state, record)))
}

/** Our word on who is drained may be newer than its record. */
function withoutDrained(state: MachineState, record: MachineRecord): MachineRecord {
  if (!isDrained(state.registers, record.id)) return record
  return { ...record, accepts: { ok: false, reason: drainedReason } }
}

/** Memory that a start under way was promised and that the record does not show yet. */
function withoutPromised(state: MachineState, record: MachineRecord): MachineRecord {
  let promisedBytes = 0
  for (const { plan } of state.starts.values()) {
    if (record.holdings.some((holding) => holding.plan.group === plan.group)) continue
    for (const { machine, memoryBytes } of plan.stages.flatMap((stage) => stage.ranks))
      if (machine === record.id) promisedBytes += memoryBytes
  }
  if (promisedBytes === 0) return record
  return { ...record, memoryLendBytes: record.memoryLendBytes - promisedBytes }
}
