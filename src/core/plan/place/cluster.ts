// The machines and links as the search sees them: numbered, with figures resolved and the best link
// of every pair looked up once.
import { type MachineFigures, machineFigures } from '../cost/figures.ts'
import type { Constants } from '../cost/constants.ts'
import type { LinkFigures } from '../cost/links.ts'
import type { MachineId } from '../../ids.ts'
import type { MeasuredWorld, PlanLink, PlanMachine } from '../types.ts'

export interface ClusterMachine {
  readonly index: number
  readonly machine: PlanMachine
  readonly figures: MachineFigures
  /** Machines that no figure tells apart share a number. */
  readonly signature: number
}

export interface Cluster {
  readonly machines: readonly ClusterMachine[]
  /** The best link of two machines, by index; null when none is known. */
  readonly link: (a: number, b: number) => LinkFigures | null
  /** The same for links: equal numbers, equal figures; 0 is no link. */
  readonly linkKind: (a: number, b: number) => number
  /** All pairs are linked alike, so sets need not be told apart by links. */
  readonly uniform: boolean
  readonly worlds: readonly MeasuredWorld[]
}

/** Chips stand in for a machine that was measured but whose chip is unknown: only figures matter. */
const unknownWatts = { idle: 10, load: 60 } as const
/** Without a specification the roof stands a little above what was measured. */
const measuredRoof = 1.15

function figuresOf(machine: PlanMachine, constants: Constants): MachineFigures | null {
  if (machine.chip !== null) return machineFigures(machine.chip, constants, machine.measurement)
  const { memoryBytesPerSecond, kernelSeconds, matmulFlops } = machine.measurement
  if (memoryBytesPerSecond === undefined || matmulFlops === undefined) return null
  return {
    memoryPeakBytesPerSecond: memoryBytesPerSecond * measuredRoof,
    memoryBytesPerSecond,
    matmulFlops,
    vectorFlops: matmulFlops,
    kernelSeconds: kernelSeconds ?? constants.kernelSeconds,
    wattsIdle: unknownWatts.idle,
    wattsLoad: unknownWatts.load,
    measured: { memory: true, kernels: kernelSeconds !== undefined, matmul: true },
  }
}

/** RDMA before all else, then what moves most. */
function better(a: LinkFigures, b: LinkFigures | null): boolean {
  if (b === null) return true
  if ((a.class === 'rdma') !== (b.class === 'rdma')) return a.class === 'rdma'
  if (a.bytesPerSecond !== b.bytesPerSecond) return a.bytesPerSecond > b.bytesPerSecond
  return a.latencySeconds < b.latencySeconds
}

/** Numbers for texts, from 1, in the order of their first use. */
function interning(): (text: string) => number {
  const known = new Map<string, number>()
  return (text) => {
    let number = known.get(text)
    if (number === undefined) {
      number = known.size + 1
      known.set(text, number)
    }
    return number
  }
}

export function createCluster(options: {
  readonly machines: readonly PlanMachine[]
  readonly links: readonly PlanLink[]
  readonly worlds: readonly MeasuredWorld[]
  readonly constants: Constants
}): { readonly cluster: Cluster; readonly unknown: readonly PlanMachine[] } {
  const machines: ClusterMachine[] = []
  const unknown: PlanMachine[] = []
  const signatures = interning()
  const signatureOf = (machine: PlanMachine, figures: MachineFigures): number =>
    signatures(
      [
        figures.memoryBytesPerSecond,
        figures.matmulFlops,
        figures.vectorFlops,
        figures.kernelSeconds,
        figures.wattsLoad,
        machine.memoryFreeBytes,
        machine.inJacclWorld,
        machine.role,
      ].join('/'),
    )
  for (const machine of options.machines) {
    const figures = figuresOf(machine, options.constants)
    if (figures === null) unknown.push(machine)
    else
      machines.push({
        index: machines.length,
        machine,
        figures,
        signature: signatureOf(machine, figures),
      })
  }
  const indexOf = new Map<MachineId, number>(
    machines.map((entry) => [entry.machine.id, entry.index] as const),
  )
  const count = machines.length
  const table: (LinkFigures | null)[] = Array.from({ length: count * count }, () => null)
  const kinds = new Int32Array(count * count)
  const linkKinds = interning()
  for (const link of options.links) {
    const a = indexOf.get(link.source)
    const b = indexOf.get(link.target)
    if (a === undefined || b === undefined || a === b) continue
    if (!better(link.figures, table[a * count + b] ?? null)) continue
    table[a * count + b] = link.figures
    table[b * count + a] = link.figures
    const { figures } = link
    const kind = linkKinds(
      `${figures.class}/${figures.bytesPerSecond}/${figures.latencySeconds}/${figures.hopSeconds ?? ''}`,
    )
    kinds[a * count + b] = kind
    kinds[b * count + a] = kind
  }
  let uniform = true
  for (let a = 0; a < count; a++)
    for (let b = 0; b < count; b++)
      if (a !== b && kinds[a * count + b] !== kinds[1]) uniform = false
  return {
    cluster: {
      machines,
      link: (a, b) => table[a * count + b] ?? null,
      linkKind: (a, b) => kinds[a * count + b] ?? 0,
      uniform,
      worlds: options.worlds,
    },
    unknown,
  }
}
