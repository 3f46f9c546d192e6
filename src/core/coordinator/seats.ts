// Machines that could take a rank, with what they have free, and why the others could not.
import type { WantedDeployment } from '../cluster/desired.ts'
import { type MachineRecord, reservedBytes } from '../cluster/record.ts'
import type { MachineId } from '../ids.ts'
import type { PlacementRequest } from './placement.ts'

export interface Seat {
  readonly record: MachineRecord
  readonly freeBytes: number
  readonly hasFiles: boolean
}

export interface Seats {
  /** Best first. */
  readonly open: readonly Seat[]
  readonly refusals: readonly string[]
}

export function seatsFor(request: PlacementRequest): Seats {
  const { deployment, machines, taken, failedOn = [] } = request
  const holds = (record: MachineRecord): boolean =>
    record.models.some((model) => model.digest === deployment.model.digest)
  const isSomewhere = machines.some(holds)
  const open: Seat[] = []
  const refusals: string[] = []
  for (const record of machines) {
    const hasFiles = holds(record)
    const freeBytes = record.memoryLendBytes - reservedBytes(record.holdings)
    const reason = refusalOf(record, { deployment, canHaveFiles: hasFiles || isSomewhere })
    if (reason === null) open.push({ record, freeBytes, hasFiles })
    else refusals.push(`${record.name}: ${reason}`)
  }
  open.sort(byPreference({ deployment, taken, failedOn }))
  return { open, refusals }
}

function byPreference(by: {
  deployment: WantedDeployment
  taken: readonly MachineId[]
  failedOn: readonly MachineId[]
}): (a: Seat, b: Seat) => number {
  const { deployment, taken, failedOn } = by
  const last = (list: readonly MachineId[], { record }: Seat): number =>
    Number(list.includes(record.id))
  const named = ({ record }: Seat): number => deployment.machines.indexOf(record.id)
  return (a, b) =>
    last(failedOn, a) - last(failedOn, b) ||
    last(taken, a) - last(taken, b) ||
    // Named machines stand in the order a person named them.
    named(a) - named(b) ||
    Number(b.hasFiles) - Number(a.hasFiles) ||
    b.freeBytes - a.freeBytes ||
    (a.record.id < b.record.id ? -1 : 1)
}

function refusalOf(
  record: MachineRecord,
  { deployment, canHaveFiles }: { deployment: WantedDeployment; canHaveFiles: boolean },
): string | null {
  if (deployment.machines.length > 0 && !deployment.machines.includes(record.id))
    return 'not among the machines asked for'
  if (record.role === 'client') return 'it is a client and holds no ranks'
  if (!record.accepts.ok) return record.accepts.reason
  return canHaveFiles ? null : `it does not have the files of ${deployment.model.name}`
}

/** Ranks of one group sit on different machines that hear each other and run the same version. */
export function unfitBeside(
  { connected }: PlacementRequest,
  record: MachineRecord,
  used: readonly MachineRecord[],
): string | null {
  for (const other of used) {
    if (other.id === record.id) return 'it already holds another part of the group'
    if (connected !== undefined && !connected(record.id, other.id))
      return `it and ${other.name} do not hear each other`
    if (other.version !== record.version)
      return `it runs version ${record.version}, ${other.name} runs ${other.version}`
  }
  return null
}
