// Who makes room for a model that fits nowhere: models that requests have loaded and that nobody uses, the one
// that was used longest ago first. What a person loaded stays, and so does whatever has answers to finish.
import { assertNever } from '../assert.ts'
import {
  type WantedDeployment,
  isDeploymentRemoved,
  wantedDeployments,
} from '../cluster/desired.ts'
import type { Holding } from '../cluster/record.ts'
import type { MachineState } from '../cluster/state.ts'
import { type DeploymentId, type MachineId, groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import { hearEachOther } from '../membership/view.ts'
import { candidateRecords } from './candidates.ts'
import { type PlacementOutcome, placeDeployment } from './placement.ts'

export type Room =
  | { readonly kind: 'fits' }
  /** It fits as soon as those that are already going have gone. */
  | { readonly kind: 'clearing'; readonly leaving: readonly string[] }
  /** It fits when these go, and they may. */
  | { readonly kind: 'clearable'; readonly deployments: readonly WantedDeployment[] }
  /** It would fit without these, but they are loading, answering or were just used. */
  | { readonly kind: 'busy'; readonly names: readonly string[]; readonly reason: string }
  /** Nothing that may go would make it fit; `staying` are those that a person loaded. */
  | { readonly kind: 'full'; readonly staying: readonly string[]; readonly reason: string }

interface Tenant {
  readonly deployment: WantedDeployment
  readonly holdings: readonly Holding[]
  readonly usedMs: number
}

export function roomFor(state: MachineState, deployment: WantedDeployment, nowMs: number): Room {
  const without = (gone: Iterable<DeploymentId>): PlacementOutcome =>
    placeWithout(state, deployment, new Set([deployment.id, ...gone]))
  const fits = (gone: Iterable<DeploymentId>): boolean => without(gone).kind === 'placed'
  const now = without([])
  if (now.kind === 'placed') return { kind: 'fits' }
  const { reason } = now
  const going = goingFrom(state)
  const left = [...going.keys()]
  if (left.length > 0 && fits(left)) return { kind: 'clearing', leaving: [...going.values()] }
  const tenants = tenantsOf(state, deployment.id)
  const may = tenants.filter((tenant) => tenant.deployment.keepAliveMs !== null)
  const idle = may.filter((tenant) => isIdle(tenant, nowMs))
  const enough = fewestThatFit(idle, (gone) => fits([...left, ...idsOf(gone)]))
  if (enough !== null)
    return { kind: 'clearable', deployments: enough.map((tenant) => tenant.deployment) }
  const busy = may.filter((tenant) => !isIdle(tenant, nowMs))
  if (busy.length > 0 && fits([...left, ...idsOf(may)]))
    return { kind: 'busy', names: busy.map(nameOf), reason }
  const staying = tenants.filter((tenant) => tenant.deployment.keepAliveMs === null)
  return { kind: 'full', staying: staying.map(nameOf), reason }
}

/** What a person is told while a model waits for room. */
export function describeRoom(room: Exclude<Room, { kind: 'fits' }>): string {
  switch (room.kind) {
    case 'clearing':
      return `waiting for ${room.leaving.join(', ')} to leave and make room`
    case 'clearable':
      return `${room.deployments.map(({ model }) => model.name).join(', ')} makes room for it`
    case 'busy':
      return `${room.reason}; waiting for ${room.names.join(', ')} to be idle and make room`
    case 'full':
      return room.staying.length === 0
        ? room.reason
        : `${room.reason}; ${room.staying.join(', ')} was loaded to stay: "bushel unload NAME" makes room`
    default:
      return assertNever(room)
  }
}

function placeWithout(
  state: MachineState,
  deployment: WantedDeployment,
  gone: ReadonlySet<DeploymentId>,
): PlacementOutcome {
  const machines = candidateRecords(state).map((record) => ({
    ...record,
    holdings: record.holdings.filter(({ plan }) => !gone.has(plan.deployment)),
  }))
  const connected = (a: MachineId, b: MachineId): boolean => hearEachOther(state, a, b)
  return placeDeployment({ group: groupId('preview'), deployment, machines, taken: [], connected })
}

/** Deployments that nobody wants any more and that still hold memory, with the names of their models. */
function goingFrom(state: MachineState): ReadonlyMap<DeploymentId, string> {
  const going = new Map<DeploymentId, string>()
  for (const { holdings } of candidateRecords(state))
    for (const { plan } of holdings)
      if (isDeploymentRemoved(state.registers, plan.deployment))
        going.set(plan.deployment, plan.model.name)
  return going
}

/** Whoever else holds memory, the one used longest ago first. */
function tenantsOf(state: MachineState, except: DeploymentId): readonly Tenant[] {
  const held = candidateRecords(state).flatMap((record) => record.holdings)
  return wantedDeployments(state.registers)
    .filter((deployment) => deployment.id !== except)
    .map((deployment) => {
      const holdings = held.filter(({ plan }) => plan.deployment === deployment.id)
      const usedMs = Math.max(...holdings.map((one) => Math.max(one.sinceMs, one.usedMs ?? 0)))
      return { deployment, holdings, usedMs }
    })
    .filter(({ holdings }) => holdings.length > 0)
    .sort((a, b) => a.usedMs - b.usedMs || (a.deployment.id < b.deployment.id ? -1 : 1))
}

function isIdle({ holdings, usedMs }: Tenant, nowMs: number): boolean {
  const rests = holdings.every(({ state, queue }) => state === 'ready' && (queue ?? 0) === 0)
  return rests && nowMs - usedMs >= limits.roomIdleMsMin
}

/** As few as possible of the first ones; null when not even all of them are enough. */
function fewestThatFit(
  tenants: readonly Tenant[],
  fits: (gone: readonly Tenant[]) => boolean,
): readonly Tenant[] | null {
  const count = tenants.findIndex((_, index) => fits(tenants.slice(0, index + 1))) + 1
  if (count === 0) return null
  let gone = tenants.slice(0, count)
  // The last one was needed; of those before it some may hold memory that helps nobody.
  for (const tenant of gone.slice(0, -1).toReversed()) {
    const fewer = gone.filter((other) => other !== tenant)
    if (fits(fewer)) gone = fewer
  }
  return gone
}

const idsOf = (tenants: readonly Tenant[]): readonly DeploymentId[] =>
  tenants.map(({ deployment }) => deployment.id)
const nameOf = ({ deployment }: Tenant): string => deployment.model.name
