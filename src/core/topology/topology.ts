// The picture of a cluster: machines, the links between them, and which shapes they allow.
import type { Contradiction } from '../machine-facts/consistency.ts'
import { findContradictions } from '../machine-facts/consistency.ts'
import { type Fact, isKnown } from '../machine-facts/fact.ts'
import type { MachineFacts, Platform } from '../machine-facts/machine.ts'
import { type Cable, type Stranger, findCabling } from './cables.ts'
import { type Link, linksBetween } from './links.ts'
import { type CableCounts, findRing, isMesh, maximalCliques, missingPairs } from './shapes.ts'

export interface Topology {
  readonly machines: readonly TopologyMachine[]
  readonly links: readonly Link[]
  readonly cables: readonly Cable[]
  readonly strangers: readonly Stranger[]
  /** Over links that carry RDMA, and over all Thunderbolt cables. */
  readonly rdma: ShapeReport
  readonly thunderbolt: ShapeReport
  /** Over everything on which two machines have addresses. */
  readonly network: ShapeReport
  readonly contradictions: readonly (Contradiction & { readonly machine: string })[]
}

export interface TopologyMachine {
  readonly name: string
  readonly platform: Platform
  readonly model: Fact<string>
  readonly chip: Fact<string>
  readonly memoryBytes: Fact<number>
  readonly system: Fact<string>
  readonly freePorts: readonly number[]
}

export interface ShapeReport {
  readonly mesh: boolean
  /** Names in ring order, starting at the first machine. */
  readonly ring: readonly string[] | null
  readonly missingPairs: readonly (readonly [string, string])[]
  /** The largest groups in which every pair is joined. */
  readonly groups: readonly (readonly string[])[]
  /** Pairs joined by more than one cable. */
  readonly multiple: readonly {
    readonly pair: readonly [string, string]
    readonly cables: number
  }[]
}

export function buildTopology(machines: readonly MachineFacts[]): Topology {
  const { cables, strangers } = findCabling(machines)
  const links = linksBetween(machines, cables)
  const names = machines.map((one) => one.name)
  const overThunderbolt = links.filter((link) => link.proof === 'cable')
  return {
    machines: machines.map(describeMachine),
    links,
    cables,
    strangers,
    rdma: reportShape(
      names,
      overThunderbolt.filter((link) => link.class === 'rdma'),
    ),
    thunderbolt: reportShape(names, overThunderbolt),
    network: reportShape(
      names,
      links.filter((link) => link.ends.every((end) => end.address !== null)),
    ),
    contradictions: machines.flatMap((facts) =>
      findContradictions(facts).map((one) => ({ ...one, machine: facts.name })),
    ),
  }
}

function describeMachine(facts: MachineFacts): TopologyMachine {
  return {
    name: facts.name,
    platform: facts.platform,
    model: facts.hardware.modelName,
    chip: facts.hardware.chip,
    memoryBytes: facts.memory.totalBytes,
    system: facts.system.version,
    freePorts: freePorts(facts),
  }
}

export function freePorts(facts: MachineFacts): readonly number[] {
  if (!facts.thunderbolt.known) return []
  return facts.thunderbolt.value
    .flatMap((port) =>
      isKnown(port.occupancy, 'empty') && port.receptacle.known ? [port.receptacle.value] : [],
    )
    .toSorted((a, b) => a - b)
}

export function countLinks(names: readonly string[], links: readonly Link[]): CableCounts {
  const joins = ({ ends: [x, y] }: Link, a: string, b: string): boolean =>
    (x.machine === a && y.machine === b) || (x.machine === b && y.machine === a)
  return names.map((a) => names.map((b) => links.filter((link) => joins(link, a, b)).length))
}

function reportShape(names: readonly string[], links: readonly Link[]): ShapeReport {
  const counts = countLinks(names, links)
  const name = (index: number): string => names[index] ?? ''
  return {
    mesh: isMesh(counts),
    ring: findRing(counts)?.map(name) ?? null,
    missingPairs: missingPairs(counts).map(([a, b]) => [name(a), name(b)]),
    groups: maximalCliques(counts).map((group) => group.map(name)),
    multiple: counts.flatMap((row, a) =>
      row.flatMap((cables, b) =>
        b > a && cables > 1 ? [{ pair: [name(a), name(b)] as const, cables }] : [],
      ),
    ),
  }
}
