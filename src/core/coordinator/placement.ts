// Where a deployment's next group goes. The planner fills this seam; here is the simplest truth:
// one machine that has the files and the room.
import type { WantedDeployment } from '../cluster/desired.ts'
import type { GroupPlan, RankPlan } from '../cluster/group-plan.ts'
import { type MachineRecord, reservedBytes } from '../cluster/record.ts'
import type { GroupId, MachineId } from '../ids.ts'

export type PlacementOutcome =
  | { readonly kind: 'placed'; readonly plan: GroupPlan }
  | { readonly kind: 'refused'; readonly reason: string }

export interface PlacementRequest {
  readonly group: GroupId
  readonly deployment: WantedDeployment
  /** Machines that can take part, with their newest records. */
  readonly machines: readonly MachineRecord[]
  /** Machines that already serve this deployment: another replica goes elsewhere first. */
  readonly taken: readonly MachineId[]
}

/** Smallest room for caches that makes a deployment useful, and the room that is given when there is plenty. */
const rowsWanted = 8
const contextTokensMin = 2048
/** Activations, tokenizer, the interpreter itself. */
const overheadBytes = 300_000_000

export function memoryForSingle(
  deployment: WantedDeployment,
  record: MachineRecord,
): { leastBytes: number; wantedBytes: number } {
  const { model, contextTokens } = deployment
  const float32 = record.computesIn === 'float32'
  const weightsBytes = float32 ? model.parameters * 4 : model.weightsBytes
  const tokenBytes = float32 ? model.kvBytesPerToken * 2 : model.kvBytesPerToken
  const least = Math.min(contextTokens, contextTokensMin)
  return {
    leastBytes: weightsBytes + least * tokenBytes + overheadBytes,
    wantedBytes: weightsBytes + contextTokens * rowsWanted * tokenBytes + overheadBytes,
  }
}

export function placeDeployment(request: PlacementRequest): PlacementOutcome {
  const { deployment, taken } = request
  const refusals: string[] = []
  const fitting: { record: MachineRecord; freeBytes: number; wantedBytes: number }[] = []
  for (const record of request.machines) {
    const freeBytes = record.memoryLendBytes - reservedBytes(record.holdings)
    const { leastBytes, wantedBytes } = memoryForSingle(deployment, record)
    const reason = refusalOf(record, { deployment, freeBytes, leastBytes })
    if (reason === null) fitting.push({ record, freeBytes, wantedBytes })
    else refusals.push(`${record.name}: ${reason}`)
  }
  fitting.sort((a, b) => {
    const fresh = Number(taken.includes(a.record.id)) - Number(taken.includes(b.record.id))
    return fresh !== 0 ? fresh : b.freeBytes - a.freeBytes || (a.record.id < b.record.id ? -1 : 1)
  })
  const best = fitting[0]
  if (best === undefined) {
    return { kind: 'refused', reason: refusals.join('; ') || 'no machine is reachable' }
  }
  const rank: RankPlan = {
    machine: best.record.id,
    memoryBytes: Math.min(best.freeBytes, best.wantedBytes),
    share: 1,
  }
  const { model, contextTokens, id } = deployment
  return {
    kind: 'placed',
    plan: {
      group: request.group,
      formation: 0,
      deployment: id,
      model,
      strategy: 'single',
      contextTokens,
      stages: [
        { layers: [0, model.layers], ranks: [rank], backend: 'none', worldStrategy: 'none' },
      ],
    },
  }
}

function refusalOf(
  record: MachineRecord,
  need: { deployment: WantedDeployment; freeBytes: number; leastBytes: number },
): string | null {
  const { deployment, freeBytes, leastBytes } = need
  if (deployment.machines.length > 0 && !deployment.machines.includes(record.id)) {
    return 'not among the machines asked for'
  }
  if (record.role === 'client') return 'it is a client and holds no ranks'
  if (!record.accepts.ok) return record.accepts.reason
  if (!record.models.some((model) => model.digest === deployment.model.digest)) {
    return `it does not have the files of ${deployment.model.name}`
  }
  if (freeBytes < leastBytes) {
    const gb = (bytes: number): string => (bytes / 1e9).toFixed(1)
    return `needs ${gb(leastBytes)} GB, ${gb(Math.max(0, freeBytes))} GB free of the ${gb(record.memoryLendBytes)} GB it lends`
  }
  return null
}
