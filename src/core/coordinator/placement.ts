// Where a deployment's next group goes. The planner fills this seam; here is the simplest truth: one
// machine that has the files and the room, or, when a person fixed the layers, one such machine per stage.
import type { WantedDeployment } from '../cluster/desired.ts'
import type { GroupPlan, RankPlan, StagePlan } from '../cluster/group-plan.ts'
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
  /** Machines on which it lately failed without having worked: any other comes first. */
  readonly failedOn?: readonly MachineId[]
  /** Whether two machines hear each other; ranks of one group must. */
  readonly connected?: (a: MachineId, b: MachineId) => boolean
}

/** Smallest room for caches that makes a deployment useful, and the room that is given when there is plenty. */
const rowsWanted = 8
const contextTokensMin = 2048
/** Activations, tokenizer, the interpreter itself. */
const overheadBytes = 300_000_000

/** What a rank with this share of the layers needs on that machine. */
export function memoryForShare(
  deployment: WantedDeployment,
  record: MachineRecord,
  share: number,
): { leastBytes: number; wantedBytes: number } {
  const { model, contextTokens } = deployment
  const float32 = record.computesIn === 'float32'
  const weightsBytes = share * (float32 ? model.parameters * 4 : model.weightsBytes)
  const tokenBytes = share * (float32 ? model.kvBytesPerToken * 2 : model.kvBytesPerToken)
  const least = Math.min(contextTokens, contextTokensMin)
  return {
    leastBytes: Math.ceil(weightsBytes + least * tokenBytes + overheadBytes),
    wantedBytes: Math.ceil(weightsBytes + contextTokens * rowsWanted * tokenBytes + overheadBytes),
  }
}

interface Fitting {
  readonly record: MachineRecord
  readonly memoryBytes: number
}

export function placeDeployment(request: PlacementRequest): PlacementOutcome {
  const { model, strategy, layers } = request.deployment
  const isCut = strategy === 'pipeline' && layers.length > 1
  const counts = isCut ? layers : [model.layers]
  // The roomiest machine may be the one that fits beside no other: then the next one heads the group.
  const first = fitting(request, { share: (counts[0] ?? 0) / model.layers, used: [] })
  if (typeof first === 'string') return { kind: 'refused', reason: first }
  let reason = ''
  for (const head of first) {
    const ranks = ranksBehind(request, head, counts)
    if (typeof ranks !== 'string') return { kind: 'placed', plan: planFor(request, counts, ranks) }
    reason ||= ranks
  }
  return { kind: 'refused', reason }
}

/** One machine for each further stage, or why there is none. */
function ranksBehind(
  request: PlacementRequest,
  head: Fitting,
  counts: readonly number[],
): readonly Fitting[] | string {
  const ranks = [head]
  for (const count of counts.slice(1)) {
    const share = count / request.deployment.model.layers
    const found = fitting(request, { share, used: ranks.map((rank) => rank.record) })
    if (typeof found === 'string') return found
    ranks.push(...found.slice(0, 1))
  }
  return ranks
}

function planFor(
  { group, deployment }: PlacementRequest,
  counts: readonly number[],
  ranks: readonly Fitting[],
): GroupPlan {
  const { id, model, contextTokens } = deployment
  let next = 0
  const stages = ranks.map(({ record, memoryBytes }, index): StagePlan => {
    const layers = [next, next + (counts[index] ?? 0)] as const
    next = layers[1]
    const rank: RankPlan = { machine: record.id, memoryBytes, share: 1 }
    return { layers, ranks: [rank], backend: 'none', worldStrategy: 'none' }
  })
  const strategy = ranks.length > 1 ? 'pipeline' : 'single'
  return { group, formation: 0, deployment: id, model, strategy, contextTokens, stages }
}

/** Machines that can hold this share beside those already chosen, best first, or why there is none. */
function fitting(
  request: PlacementRequest,
  { share, used }: { share: number; used: readonly MachineRecord[] },
): readonly Fitting[] | string {
  const { deployment, taken, failedOn = [] } = request
  const refusals: string[] = []
  const found: { record: MachineRecord; freeBytes: number; wantedBytes: number }[] = []
  for (const record of request.machines) {
    const freeBytes = record.memoryLendBytes - reservedBytes(record.holdings)
    const { leastBytes, wantedBytes } = memoryForShare(deployment, record, share)
    const reason =
      refusalOf(record, { deployment, freeBytes, leastBytes }) ?? unfitBeside(request, record, used)
    if (reason === null) found.push({ record, freeBytes, wantedBytes })
    else refusals.push(`${record.name}: ${reason}`)
  }
  if (found.length === 0) return refusals.join('; ') || 'no machine is reachable'
  const last = (list: readonly MachineId[], record: MachineRecord): number =>
    Number(list.includes(record.id))
  found.sort(
    (a, b) =>
      last(failedOn, a.record) - last(failedOn, b.record) ||
      last(taken, a.record) - last(taken, b.record) ||
      b.freeBytes - a.freeBytes ||
      (a.record.id < b.record.id ? -1 : 1),
  )
  return found.map(({ record, freeBytes, wantedBytes }) => ({
    record,
    memoryBytes: Math.min(freeBytes, wantedBytes),
  }))
}

/** Ranks of one group sit on different machines that hear each other and run the same version. */
function unfitBeside(
  { connected }: PlacementRequest,
  record: MachineRecord,
  used: readonly MachineRecord[],
): string | null {
  for (const other of used) {
    if (other.id === record.id) return 'it already holds another stage of the group'
    if (connected !== undefined && !connected(record.id, other.id))
      return `it and ${other.name} do not hear each other`
    if (other.version !== record.version)
      return `it runs version ${record.version}, ${other.name} runs ${other.version}`
  }
  return null
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
