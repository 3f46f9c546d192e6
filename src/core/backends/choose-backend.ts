// Which backend a tensor-parallel world gets: JACCL where every check passes, otherwise a TCP ring, and
// always with the reason. Pure, so that the planner, the doctor and a person reading it get one answer.
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { Cable } from '../topology/cables.ts'
import type { Link } from '../topology/links.ts'
import { findRing, isMesh, missingPairs, ringWidth } from '../topology/shapes.ts'
import { type Topology, buildTopology, countLinks } from '../topology/topology.ts'
import { bestCoordinator, meetingPoint } from './coordinator.ts'
import { type DeviceMatrix, meshMatrix, ringMatrix } from './device-matrix.ts'
import {
  type JacclCheck,
  allPass,
  checkAgreement,
  checkCableForJaccl,
  checkMachineForJaccl,
  ringVersionCheck,
} from './jaccl-checks.ts'
import { jacclLimits } from './limits.ts'
import type { Rendezvous } from './rank-environment.ts'
import { type TcpRing, findTcpRing } from './tcp-ring.ts'

export interface BackendRequest {
  /** The machines of the world, one rank each. */
  readonly machines: readonly MachineFacts[]
  /** Machines that already hold a JACCL world: their drivers have no room for a second. */
  readonly busyMachines: readonly string[]
  /** The control plane's own exchange, or a port on which rank 0 may listen for it. */
  readonly rendezvous:
    | { readonly kind: 'control-plane' }
    | { readonly kind: 'port'; readonly port: number }
}

export type BackendChoice =
  | {
      readonly kind: 'jaccl'
      readonly shape: 'mesh' | 'ring'
      /** Machines by rank. */
      readonly order: readonly string[]
      readonly matrix: DeviceMatrix
      readonly rendezvous: Rendezvous
      readonly checks: readonly JacclCheck[]
      readonly why: string
    }
  | {
      readonly kind: 'ring'
      readonly order: readonly string[]
      /** Listening addresses by rank, without ports. */
      readonly addresses: readonly (readonly string[])[]
      readonly over: TcpRing['over']
      readonly checks: readonly JacclCheck[]
      readonly why: string
    }
  | { readonly kind: 'none'; readonly checks: readonly JacclCheck[]; readonly why: string }

export function chooseBackend(request: BackendRequest): BackendChoice {
  const { machines } = request
  if (machines.length < 2)
    return { kind: 'none', checks: [], why: 'one machine needs no backend between machines' }
  const topology = buildTopology(machines)
  const shape = findShape(topology)
  const checks = [
    ...machines.flatMap((facts) => checkMachineForJaccl(facts, request.busyMachines)),
    ...checkAgreement(machines),
    ...shape.checks,
    ...(shape.kind === 'ring' ? [ringVersionCheck(machines)] : []),
    ...shape.cables.flatMap((cable) => checkCableForJaccl(cable, machines)),
  ]
  if (shape.kind !== 'none' && allPass(checks)) {
    const chosen = jacclChoice({ request, topology, shape, checks })
    if (chosen !== null) return chosen
  }
  return ringChoice(topology, checks)
}

type Shape =
  | {
      readonly kind: 'mesh'
      readonly cables: readonly Cable[]
      readonly checks: readonly JacclCheck[]
    }
  | {
      readonly kind: 'ring'
      readonly ring: readonly number[]
      readonly width: number
      readonly cables: readonly Cable[]
      readonly checks: readonly JacclCheck[]
    }
  | {
      readonly kind: 'none'
      readonly cables: readonly Cable[]
      readonly checks: readonly JacclCheck[]
    }

/** Over cables that carry RDMA. Links by cable stand in the same order as the cables themselves. */
function findShape(topology: Topology): Shape {
  const names = topology.machines.map((one) => one.name)
  const carrying = topology.links.filter((link) => link.class === 'rdma')
  const cables = topology.cables.filter((_, index) => topology.links[index]?.class === 'rdma')
  const counts = countLinks(names, carrying)
  if (isMesh(counts) && names.length <= jacclLimits.meshRanksMax)
    return {
      kind: 'mesh',
      cables,
      checks: [pass(`every pair of ${names.length} machines is cabled`)],
    }
  const ring = findRing(counts)
  if (ring !== null) {
    const width = Math.min(ringWidth(counts, ring), jacclLimits.ringCablesMax)
    const order = ring.map((index) => names[index] ?? '')
    return {
      kind: 'ring',
      ring,
      width,
      cables,
      checks: [pass(`a ring ${order.join(' → ')} is cabled`)],
    }
  }
  const missing = missingPairs(counts).map(([a, b]) =>
    missingEvidence(topology, names[a] ?? '', names[b] ?? ''),
  )
  return {
    kind: 'none',
    cables: [],
    checks: missing.map((evidence) => ({ id: 'shape', result: 'fail', evidence })),
  }
}

const pass = (evidence: string): JacclCheck => ({ id: 'shape', result: 'pass', evidence })

/** Why a pair counts as not joined: there is no cable, or what is wrong with the one there is. */
function missingEvidence(topology: Topology, a: string, b: string): string {
  const cable = topology.links.find(
    (link): boolean =>
      link.proof === 'cable' && link.ends.every((end) => end.machine === a || end.machine === b),
  )
  if (cable?.rdma == null) return `no Thunderbolt cable joins ${a} and ${b}`
  return `the cable between ${a} and ${b} carries no RDMA: ${[...cable.rdma.obstacles, ...cable.rdma.doubts].join('; ')}`
}

function jacclChoice(found: {
  readonly request: BackendRequest
  readonly topology: Topology
  readonly shape: Exclude<Shape, { kind: 'none' }>
  readonly checks: readonly JacclCheck[]
}): BackendChoice | null {
  const { request, topology, shape } = found
  const names = request.machines.map((one) => one.name)
  const first = bestCoordinator(request.machines, topology.links)
  const natural = shape.kind === 'mesh' ? names : shape.ring.map((index) => names[index] ?? '')
  const order = startingAt(natural, first, shape.kind)
  const rendezvous = rendezvousOf(request, order, topology.links)
  if (rendezvous === null) return null
  return {
    kind: 'jaccl',
    shape: shape.kind,
    order,
    matrix:
      shape.kind === 'mesh'
        ? meshMatrix(order, shape.cables)
        : ringMatrix(order, shape.cables, shape.width),
    rendezvous,
    checks: found.checks,
    why: `JACCL ${shape.kind}: all ${found.checks.length} checks pass`,
  }
}

/** A ring may be entered anywhere but keeps its order; in a mesh the first machine just moves up. */
function startingAt(
  order: readonly string[],
  first: string | null,
  shape: 'mesh' | 'ring',
): readonly string[] {
  if (first === null || !order.includes(first)) return order
  if (shape === 'mesh') return [first, ...order.filter((name) => name !== first)]
  const at = order.indexOf(first)
  return [...order.slice(at), ...order.slice(0, at)]
}

function rendezvousOf(
  request: BackendRequest,
  order: readonly string[],
  links: readonly Link[],
): Rendezvous | null {
  if (request.rendezvous.kind === 'control-plane') return { kind: 'control-plane' }
  const [first = '', ...others] = order
  const point = meetingPoint(first, others, links)
  return point === null
    ? null
    : { kind: 'coordinator', address: point.address, port: request.rendezvous.port }
}

function ringChoice(topology: Topology, checks: readonly JacclCheck[]): BackendChoice {
  const against = checks.filter((one) => one.result !== 'pass').map((one) => one.evidence)
  const notJaccl =
    against.length > 0
      ? `not JACCL: ${against.join('; ')}`
      : 'not JACCL: no address of rank 0 is reachable by all others'
  const ring = findTcpRing(
    topology.machines.map((one) => one.name),
    topology.links,
  )
  if (ring === null)
    return {
      kind: 'none',
      checks,
      why: `${notJaccl}; and no ring of networks joins all machines`,
    }
  return { kind: 'ring', ...ring, checks, why: `TCP ring over ${ring.over}; ${notJaccl}` }
}
