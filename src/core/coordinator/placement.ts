// Where a deployment's next group goes: a shape, and a machine with enough room for each of its ranks.
import { reasonFor } from '../cluster/advice.ts'
import type { WantedDeployment } from '../cluster/desired.ts'
import type { GroupPlan, RankPlan, StagePlan } from '../cluster/group-plan.ts'
import type { MachineRecord } from '../cluster/record.ts'
import type { GroupId, MachineId } from '../ids.ts'
import { type Seat, seatsFor, unfitBeside } from './seats.ts'
import { type Shape, apportion, shapesFor, whyNotShape } from './shapes.ts'

export type PlacementOutcome =
  | {
      readonly kind: 'placed'
      readonly plan: GroupPlan
      /** Machines of the plan that must first get the model's files, and one that has them. */
      readonly missing: readonly MachineId[]
      readonly source: MachineId | null
    }
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

/** What a rank with this share of the model needs on that machine. */
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

export function placeDeployment(request: PlacementRequest): PlacementOutcome {
  const { deployment } = request
  const seats = seatsFor(request)
  const absent = deployment.machines.length - seats.open.length
  const shapes = shapesFor(deployment, seats.open.length)
  if (typeof shapes === 'string') return { kind: 'refused', reason: shapes }
  if (seats.open.length === 0 || (absent > 0 && deployment.strategy !== 'single')) {
    const why = seats.refusals.filter((text) => !text.includes('not among the machines'))
    const reason = why.join('; ') || seats.refusals.join('; ') || 'no machine is reachable'
    if (seats.open.length === 0 || why.length > 0) return { kind: 'refused', reason }
  }
  const advised = placeAdvised(request, seats.open)
  if (advised !== null) return placed(request, advised, seats.open)
  const reasons: string[] = []
  for (const shape of shapes) {
    const plan = placeShape(request, shape, seats.open)
    if (typeof plan !== 'string') return placed(request, plan, seats.open)
    reasons.push(plan)
  }
  // The first tells of the simplest shape, the last of the widest: between them is nothing new.
  const told = [...new Set([reasons[0], reasons.at(-1)])].filter((text) => text !== undefined)
  return { kind: 'refused', reason: told.join('; and shared out: ') }
}

/** As the planner chose, while every machine it named is there and has the room; otherwise null. */
function placeAdvised(request: PlacementRequest, seats: readonly Seat[]): GroupPlan | null {
  const { deployment, taken, failedOn = [] } = request
  const { advice, strategy, layers } = deployment
  if (strategy !== 'auto' || layers.length > 0 || advice?.kind !== 'planned') return null
  const named = advice.stages.flatMap((stage) => stage.machines)
  // A replica beside it, or another try after a failure, goes elsewhere first.
  if (named.some((machine) => taken.includes(machine) || failedOn.includes(machine))) return null
  const order = named.flatMap((machine) => seats.find(({ record }) => record.id === machine) ?? [])
  const counts = advice.stages.map((stage) => stage.layers)
  const covered = counts.reduce((sum, count) => sum + count, 0)
  if (order.length !== named.length || covered !== deployment.model.layers) return null
  const worlds = advice.stages.map((stage) => stage.machines.length)
  const team = teamInOrder(request, order, sharesOf(deployment, worlds, counts))
  if (team === null) return null
  const sharing = advice.stages.find((stage) => stage.sharing !== 'alone')?.sharing
  const shape: Shape = {
    strategy: advice.strategy,
    worlds,
    layers: counts,
    worldStrategy: sharing === undefined || sharing === 'alone' ? 'none' : sharing,
  }
  if (whyNotShape(deployment, shape) !== null) return null
  const { backend, devices } = advice
  const settled = {
    ...deployment,
    backend: deployment.backend === 'auto' ? backend : deployment.backend,
    ...(devices === undefined || deployment.devices !== undefined ? {} : { devices }),
  }
  return planFor({ ...request, deployment: settled }, { shape, counts, team })
}

/** Each rank on the machine at its place, or null when one does not fit there. */
function teamInOrder(
  request: PlacementRequest,
  seats: readonly Seat[],
  shares: readonly number[],
): readonly Member[] | null {
  const team: Member[] = []
  for (const [index, { record, freeBytes }] of seats.entries()) {
    const need = memoryForShare(request.deployment, record, shares[index] ?? 1)
    const used = team.map((member) => member.record)
    if (unfitBeside(request, record, used) !== null || freeBytes < need.leastBytes) return null
    team.push({ record, memoryBytes: Math.min(freeBytes, need.wantedBytes) })
  }
  return team
}

function placed(
  { deployment }: PlacementRequest,
  plan: GroupPlan,
  seats: readonly Seat[],
): PlacementOutcome {
  const used = new Set(plan.stages.flatMap((stage) => stage.ranks.map((rank) => rank.machine)))
  const missing = seats.filter((seat) => used.has(seat.record.id) && !seat.hasFiles)
  const source = seats.find((seat) => seat.hasFiles)?.record.id ?? null
  const reason = reasonFor(plan, deployment)
  return {
    kind: 'placed',
    plan: reason === null ? plan : { ...plan, reason },
    missing: missing.map((seat) => seat.record.id),
    source,
  }
}

/** The roomiest machine may be the one that fits beside no other: then the next one heads the group. */
function placeShape(
  request: PlacementRequest,
  shape: Shape,
  seats: readonly Seat[],
): GroupPlan | string {
  let reason = ''
  for (const head of seats) {
    const order = [head, ...seats.filter((seat) => seat !== head)]
    const counts = shape.layers ?? layersByRoom(request, order.slice(0, shape.worlds.length))
    const team = teamFor(request, order, sharesOf(request.deployment, shape.worlds, counts))
    if (typeof team !== 'string') return planFor(request, { shape, counts, team })
    reason ||= team
  }
  return reason
}

interface Member {
  readonly record: MachineRecord
  readonly memoryBytes: number
}

/** A machine for each rank, the first seat for the head, or why there is none. */
function teamFor(
  request: PlacementRequest,
  seats: readonly Seat[],
  shares: readonly number[],
): readonly Member[] | string {
  const team: Member[] = []
  for (const share of shares) {
    const refusals: string[] = []
    const used = team.map((member) => member.record)
    const pool = team.length === 0 ? seats.slice(0, 1) : seats
    const found = pool.find(({ record, freeBytes }) => {
      const { leastBytes } = memoryForShare(request.deployment, record, share)
      const reason = unfitBeside(request, record, used) ?? tooSmall(record, freeBytes, leastBytes)
      if (reason !== null) refusals.push(`${record.name}: ${reason}`)
      return reason === null
    })
    if (found === undefined) return refusals.join('; ') || 'no machine is reachable'
    const { wantedBytes } = memoryForShare(request.deployment, found.record, share)
    team.push({ record: found.record, memoryBytes: Math.min(found.freeBytes, wantedBytes) })
  }
  return team
}

function tooSmall(record: MachineRecord, freeBytes: number, leastBytes: number): string | null {
  if (freeBytes >= leastBytes) return null
  const gb = (bytes: number): string => (bytes / 1e9).toFixed(1)
  return `needs ${gb(leastBytes)} GB, ${gb(Math.max(0, freeBytes))} GB free of the ${gb(record.memoryLendBytes)} GB it lends`
}

/** Layers by what each machine has free beyond what every rank needs anyway. */
function layersByRoom({ deployment }: PlacementRequest, seats: readonly Seat[]): readonly number[] {
  const room = seats.map(({ record, freeBytes }) => {
    const { leastBytes } = memoryForShare(deployment, record, 1)
    // In layers, so that a machine that computes in float32 counts for what it can really hold.
    return Math.max(0, (freeBytes - overheadBytes) / (leastBytes - overheadBytes))
  })
  return apportion(deployment.model.layers, room)
}

/** What part of the model each rank holds; both ends hold the embedding when it is tied. */
export function sharesOf(
  { model }: WantedDeployment,
  worlds: readonly number[],
  counts: readonly number[],
): readonly number[] {
  const { edgeFraction = 0, tied = false } = model.cut ?? {}
  const edge = tied ? edgeFraction : edgeFraction / 2
  const last = worlds.length - 1
  return worlds.flatMap((size, stage) => {
    const layers = ((counts[stage] ?? 0) / model.layers) * (1 - edgeFraction)
    const ends = last === 0 ? edgeFraction : stage === 0 || stage === last ? edge : 0
    return Array.from({ length: size }, () => (layers + ends) / size)
  })
}

function planFor(
  { group, deployment }: PlacementRequest,
  { shape, counts, team }: { shape: Shape; counts: readonly number[]; team: readonly Member[] },
): GroupPlan {
  const { id, model, contextTokens } = deployment
  let layer = 0
  let first = 0
  const stages = shape.worlds.map((size, index): StagePlan => {
    const layers = [layer, layer + (counts[index] ?? 0)] as const
    const members = team.slice(first, first + size)
    const devices = deployment.devices
      ?.slice(first, first + size)
      .map((row) => row.slice(first, first + size))
    layer = layers[1]
    first += size
    const isWorld = size > 1
    const backend = deployment.backend === 'auto' ? 'ring' : deployment.backend
    return {
      layers,
      ranks: members.map((member) => rankOf(deployment, member, members)),
      backend: isWorld ? backend : 'none',
      worldStrategy: isWorld ? shape.worldStrategy : 'none',
      ...(isWorld && backend === 'jaccl' && devices !== undefined ? { devices } : {}),
    }
  })
  const { strategy } = shape
  return { group, formation: 0, deployment: id, model, strategy, contextTokens, stages }
}

/** A quicker machine takes more of each layer, where the model can be split unevenly. */
function rankOf(
  { model }: WantedDeployment,
  { record, memoryBytes }: Member,
  world: readonly Member[],
): RankPlan {
  const speeds = world.map((member) => member.record.memoryBandwidth ?? 0)
  const canDiffer = model.cut?.tensor === 'uneven' && speeds.every((speed) => speed > 0)
  const share = canDiffer && world.length > 1 ? (record.memoryBandwidth ?? 1) : 1
  return { machine: record.id, memoryBytes, share }
}
