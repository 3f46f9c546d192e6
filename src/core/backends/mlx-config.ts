// What mlx.distributed_config does, from facts instead of SSH: the hostfile that MLX's own tools read,
// and the commands that give each cable its addresses.
import { dottedMask } from '../machine-facts/ipv4.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import type { Cable } from '../topology/cables.ts'
import type { Link } from '../topology/links.ts'
import { type CableCounts, findRing, isMesh, missingPairs, ringWidth } from '../topology/shapes.ts'
import { buildTopology } from '../topology/topology.ts'
import { type AddressPlan, type CableAddresses, planAddresses } from './address-plan.ts'
import { meshMatrix, ringMatrix } from './device-matrix.ts'
import type { MlxHostfile } from './hostfile.ts'
import { jacclLimits } from './limits.ts'
import { findTcpRing } from './tcp-ring.ts'

export type MlxBackend = MlxHostfile['backend']

export interface MlxConfigRequest {
  readonly machines: readonly MachineFacts[]
  /** Null chooses as MLX does: JACCL mesh, then JACCL ring, then ring. */
  readonly backend: MlxBackend | null
  readonly over: 'thunderbolt' | 'network'
  readonly envs: readonly string[]
  /** How mlx.launch reaches a machine; its name unless given. */
  readonly sshNames: Readonly<Record<string, string>>
}

export type MlxConfig =
  | {
      readonly kind: 'configured'
      readonly hostfile: MlxHostfile
      /** Per machine, to be run there; empty when every cable already has its addresses. */
      readonly setup: Readonly<Record<string, readonly string[]>>
      readonly notes: readonly string[]
    }
  | { readonly kind: 'refused'; readonly reasons: readonly string[] }

interface Ground {
  readonly request: MlxConfigRequest
  readonly names: readonly string[]
  readonly cables: readonly Cable[]
  readonly links: readonly Link[]
  readonly counts: CableCounts
}

export function mlxConfig(request: MlxConfigRequest): MlxConfig {
  const topology = buildTopology(request.machines)
  const names = request.machines.map((one) => one.name)
  if (names.length < 2) return refused('a hostfile needs two machines or more')
  if (request.over === 'network') return networkRing(request, topology.links)
  // A dock in between, or a port whose interface nobody names, is no cable that MLX could use.
  const cables = topology.cables.filter(
    (cable) => cable.via.length === 0 && cable.ends.every((end) => end.interface.known),
  )
  const ground: Ground = {
    request,
    names,
    cables,
    links: topology.links,
    counts: countCables(names, cables),
  }
  const backend = request.backend ?? chooseAsMlx(ground)
  if (backend === null)
    return refused(
      'the Thunderbolt cables form neither a mesh nor a ring',
      ...missingPairs(ground.counts).map(([a, b]) => `no cable joins ${names[a]} and ${names[b]}`),
    )
  const plan = planAddresses(request.machines, cables)
  if (plan.kind === 'pool-empty') return refused('192.168.0.0/16 is used up; free a part of it')
  return backend === 'jaccl' ? jacclMesh(ground, plan) : ringOf(ground, plan, backend)
}

const refused = (...reasons: string[]): MlxConfig => ({ kind: 'refused', reasons })

function countCables(names: readonly string[], cables: readonly Cable[]): CableCounts {
  const joins = ({ ends: [x, y] }: Cable, a: string, b: string): boolean =>
    (x.machine === a && y.machine === b) || (x.machine === b && y.machine === a)
  return names.map((a) => names.map((b) => cables.filter((cable) => joins(cable, a, b)).length))
}

function chooseAsMlx(ground: Ground): MlxBackend | null {
  const rdma = withoutRdma(ground).length === 0
  if (rdma && isMesh(ground.counts)) return 'jaccl'
  if (findRing(ground.counts) === null) return null
  return rdma ? 'jaccl-ring' : 'ring'
}

function withoutRdma(ground: Ground): readonly string[] {
  return ground.request.machines
    .filter(({ rdma }) => {
      const listed = rdma.deviceNames.known ? rdma.deviceNames.value.length : 0
      return listed === 0 && !(rdma.devices.known && rdma.devices.value.length > 0)
    })
    .map((facts) => `${facts.name} lists no RDMA device`)
}

function jacclMesh(ground: Ground, plan: Extract<AddressPlan, { kind: 'planned' }>): MlxConfig {
  const missing = missingPairs(ground.counts)
  const reasons = [
    ...withoutRdma(ground),
    ...missing.map(
      ([a, b]) =>
        `no cable joins ${ground.names[a]} and ${ground.names[b]}, and a mesh needs every pair`,
    ),
    ...(ground.names.length > jacclLimits.meshRanksMax
      ? [`a JACCL mesh holds ${jacclLimits.meshRanksMax} ranks at most`]
      : []),
  ]
  if (reasons.length > 0) return refused(...reasons)
  const matrix = meshMatrix(ground.names, ground.cables)
  return configured(ground, plan, {
    backend: 'jaccl',
    envs: ground.request.envs,
    hosts: ground.names.map((name, rank) => ({
      ssh: sshName(ground.request, name),
      ips: networkAddress(ground, name),
      rdma: matrix[rank] ?? [],
    })),
  })
}

function ringOf(
  ground: Ground,
  plan: Extract<AddressPlan, { kind: 'planned' }>,
  backend: 'ring' | 'jaccl-ring',
): MlxConfig {
  const ring = findRing(ground.counts)
  if (ring === null) return refused('the Thunderbolt cables form no ring through all machines')
  const lacking = backend === 'jaccl-ring' ? withoutRdma(ground) : []
  if (lacking.length > 0) return refused(...lacking)
  const order = ring.map((index) => ground.names[index] ?? '')
  const width =
    backend === 'jaccl-ring'
      ? Math.min(ringWidth(ground.counts, ring), jacclLimits.ringCablesMax)
      : ringWidth(ground.counts, ring)
  const matrix = backend === 'jaccl-ring' ? ringMatrix(order, ground.cables, width) : null
  return configured(ground, plan, {
    backend,
    envs: ground.request.envs,
    hosts: order.map((name, rank) => ({
      ssh: sshName(ground.request, name),
      ips:
        backend === 'jaccl-ring'
          ? networkAddress(ground, name)
          : addressesTowards(plan, {
              name,
              peer: order[(rank + order.length - 1) % order.length] ?? '',
            }).slice(0, width),
      rdma: matrix?.[rank] ?? [],
    })),
  })
}

function configured(
  ground: Ground,
  plan: Extract<AddressPlan, { kind: 'planned' }>,
  hostfile: MlxHostfile,
): MlxConfig {
  const unreachable =
    hostfile.backend !== 'ring' && hostfile.hosts[0]?.ips.length === 0
      ? [
          `${hostfile.hosts[0].ssh} has no address on a network with the others; mlx.launch needs one for rank 0`,
        ]
      : []
  return {
    kind: 'configured',
    hostfile,
    setup: setupCommands(ground, plan.cables),
    notes: unreachable,
  }
}

const sshName = (request: MlxConfigRequest, machine: string): string =>
  request.sshNames[machine] ?? machine

function addressesTowards(
  plan: Extract<AddressPlan, { kind: 'planned' }>,
  pair: { readonly name: string; readonly peer: string },
): readonly string[] {
  return plan.cables.flatMap(({ cable, ends }) => {
    const mine = cable.ends.findIndex((end) => end.machine === pair.name)
    return mine !== -1 && cable.ends.some((end) => end.machine === pair.peer)
      ? [ends[mine]?.address ?? '']
      : []
  })
}

/** The address on a network shared with another machine; failing that, any on Ethernet or Wi-Fi. */
function networkAddress(ground: Ground, name: string): readonly string[] {
  const shared = ground.links.flatMap((link) =>
    link.proof === 'same-subnet' ? link.ends.filter((end) => end.machine === name) : [],
  )
  const facts = ground.request.machines.find((one) => one.name === name)
  const own =
    facts?.interfaces.known === true
      ? facts.interfaces.value
          .filter((one) => one.kind === 'ethernet' || one.kind === 'wifi')
          .flatMap((one) => one.ipv4)
      : []
  const address = shared[0]?.address ?? own[0]?.address
  return address == null ? [] : [address]
}

/** Like MLX's own set-up, but only for cables that need it, and out of the bridge instead of killing it. */
function setupCommands(
  ground: Ground,
  cables: readonly CableAddresses[],
): Readonly<Record<string, readonly string[]>> {
  const setup: Record<string, string[]> = {}
  for (const { cable, ends, action } of cables) {
    if (action === 'keep') continue
    for (const [index, end] of cable.ends.entries()) {
      const facts = ground.request.machines.find((one) => one.name === end.machine)
      const name = end.interface.known ? end.interface.value : ''
      const mine = ends[index]
      const theirs = ends[1 - index]
      if (facts === undefined || mine === undefined || theirs === undefined) continue
      const bridge = facts.interfaces.known
        ? facts.interfaces.value.find((one) => one.members.includes(name))?.name
        : undefined
      const commands = (setup[end.machine] ??= [])
      if (bridge !== undefined) commands.push(`sudo ifconfig ${bridge} deletem ${name}`)
      commands.push(
        `sudo ifconfig ${name} inet ${mine.address} netmask ${dottedMask(mine.prefixLength)}`,
        `sudo route change ${theirs.address} -interface ${name}`,
      )
    }
  }
  return setup
}

function networkRing(request: MlxConfigRequest, links: readonly Link[]): MlxConfig {
  if (request.backend !== null && request.backend !== 'ring')
    return refused(`${request.backend} runs over Thunderbolt, not over a network`)
  const network = links.filter((link) => link.proof === 'same-subnet')
  const ring = findTcpRing(
    request.machines.map((one) => one.name),
    network,
  )
  if (ring === null) return refused('the machines share no network in a ring')
  return {
    kind: 'configured',
    hostfile: {
      backend: 'ring',
      envs: request.envs,
      hosts: ring.order.map((name, rank) => ({
        ssh: sshName(request, name),
        ips: ring.addresses[rank] ?? [],
        rdma: [],
      })),
    },
    setup: {},
    notes: ring.over === 'wifi' ? ['a hop of this ring is Wi-Fi, which is slow and unsteady'] : [],
  }
}
