// Machines one might own, written in one line: "2xM3Ultra-512+M4Max-128,tb5-mesh,10gbe". Typing errors
// are answered with what was probably meant.
import { machineId } from '../../ids.ts'
import { GiB } from '../../units.ts'
import type { ChipFigures } from '../cost/figures.ts'
import { type LinkEntry, linkFigures } from '../cost/links.ts'
import type { PlanLink, PlanMachine } from '../types.ts'
import { nearest } from './nearest.ts'

export interface ClusterTables {
  readonly chips: readonly { readonly names: readonly string[]; readonly chip: ChipFigures }[]
  readonly links: readonly LinkEntry[]
}

export type ClusterOutcome =
  | {
      readonly kind: 'understood'
      readonly machines: readonly PlanMachine[]
      readonly links: readonly PlanLink[]
      readonly notes: readonly string[]
    }
  | { readonly kind: 'misread'; readonly message: string }

const machinesMax = 256
/** Ways to cable: the table's link, and who is joined to whom. */
const layouts: Readonly<Record<string, { link: string; shape: 'mesh' | 'ring' | 'all' }>> = {
  'tb5-mesh': { link: 'tb5-rdma', shape: 'mesh' },
  'tb5-ring': { link: 'tb5-rdma', shape: 'ring' },
  'tb5-ip': { link: 'tb5-ip', shape: 'all' },
  'tb4-ip': { link: 'tb4-ip', shape: 'all' },
}

interface Parsed {
  readonly count: number
  readonly chip: ChipFigures
  readonly memoryBytes: number
  readonly laptop: boolean
}

export function parseCluster(text: string, tables: ClusterTables): ClusterOutcome {
  const misread = (message: string): ClusterOutcome => ({
    kind: 'misread',
    message: `cluster "${text}": ${message}`,
  })
  const terms = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
  if (terms.length === 0) return misread('it is empty; try 4xM3Ultra-512,tb5-mesh')
  const linkNames = [...Object.keys(layouts), ...tables.links.map((entry) => entry.key)]
  const parsed: Parsed[] = []
  const wires: string[] = []
  const notes: string[] = []
  for (const term of terms) {
    if (linkNames.includes(term.toLowerCase())) {
      wires.push(term.toLowerCase())
      continue
    }
    for (const word of term.split('+')) {
      const machine = parseMachine(word.trim(), tables, notes)
      if (typeof machine === 'string') {
        const wire = nearest(word, linkNames)
        const looksLikeLink =
          wire !== null && !/\d+x/i.test(word) && nearest(word, chipNames(tables)) === null
        return misread(
          looksLikeLink ? `"${word}" is no way to link machines; did you mean ${wire}?` : machine,
        )
      }
      parsed.push(machine)
    }
  }
  if (parsed.length === 0)
    return misread('it names links but no machines; try 2xM4Max-128,tb5-mesh')
  const machines = nameMachines(parsed)
  if (machines.length > machinesMax)
    return misread(`${machines.length} machines are too many; at most ${machinesMax} are planned`)
  if (wires.length === 0 && machines.length > 1) {
    const rdma = machines.every((machine) => (machine.chip?.rdmaPorts ?? 0) >= machines.length - 1)
    wires.push(rdma ? 'tb5-mesh' : '10gbe')
    notes.push(`no link was named: ${wires[0] ?? ''} is assumed`)
  }
  const links: PlanLink[] = []
  for (const wire of wires) {
    const laid = layLinks(wire, machines, tables)
    if (typeof laid === 'string') return misread(laid)
    links.push(...laid)
  }
  const linked = new Set(links.flatMap((link) => [link.source, link.target]))
  const unlinked = machines.length > 1 ? machines.filter((machine) => !linked.has(machine.id)) : []
  const lonely = unlinked.find((machine) => machine.chip?.rdmaPorts === 0) ?? unlinked[0]
  if (lonely !== undefined)
    return misread(
      `${lonely.chip?.name ?? lonely.name} has no Thunderbolt 5 with RDMA, so ${wires.join(', ')} does not reach it; add a link for it, for example ,10gbe`,
    )
  return { kind: 'understood', machines, links, notes }
}

const chipNames = (tables: ClusterTables): string[] =>
  tables.chips.flatMap((entry) => [...entry.names])

function parseMachine(word: string, tables: ClusterTables, notes: string[]): Parsed | string {
  const match = /^(?:(\d+)\s*[x×*])?\s*([a-z][a-z0-9 ]*?)(?:-(\d+)(?:gb|g)?)?(?:-(laptop))?$/i.exec(
    word,
  )
  if (match === null) return `"${word}" is not a machine; write it like 4xM3Ultra-512`
  const count = match[1] === undefined ? 1 : Number(match[1])
  if (count < 1) return `"${word}" asks for no machine at all`
  const name = (match[2] ?? '').replaceAll(' ', '')
  const found = tables.chips.find((entry) =>
    entry.names.some((known) => known.toLowerCase() === name.toLowerCase()),
  )
  if (found === undefined) {
    const meant = nearest(name, chipNames(tables))
    return `the chip "${name}" is unknown${meant === null ? `; known are ${tables.chips.map((entry) => entry.chip.key).join(', ')}` : `; did you mean ${meant}?`}`
  }
  const { chip } = found
  const options = chip.memoryOptionsBytes.map((bytes) => Math.round(bytes / GiB))
  const largest = Math.max(...options)
  if (match[3] === undefined && options.length > 1)
    notes.push(`${chip.key}: the largest memory, ${largest} GB, is assumed`)
  const memory = match[3] === undefined ? largest : Number(match[3])
  if (!options.includes(memory))
    return `${chip.key} comes with ${options.join(', ')} GB, not ${memory}; write for example ${chip.key}-${largest}`
  return { count, chip, memoryBytes: memory * GiB, laptop: match[4] !== undefined }
}

function nameMachines(parsed: readonly Parsed[]): PlanMachine[] {
  const counters = new Map<string, number>()
  return parsed.flatMap((entry) =>
    Array.from({ length: entry.count }, () => {
      const key = entry.chip.key.toLowerCase()
      const number = (counters.get(key) ?? 0) + 1
      counters.set(key, number)
      const name = `${key}-${number}`
      return {
        id: machineId(name),
        name,
        chip: entry.chip,
        measurement: {},
        memoryFreeBytes: Math.floor(entry.memoryBytes * entry.chip.memoryShareUsable),
        role: entry.laptop ? ('sometimes' as const) : ('always-on' as const),
        onBattery: false,
        inJacclWorld: false,
        running: [],
        diskBytesPerSecond: null,
      }
    }),
  )
}

function layLinks(
  wire: string,
  machines: readonly PlanMachine[],
  tables: ClusterTables,
): PlanLink[] | string {
  const layout = layouts[wire] ?? { link: wire, shape: 'all' as const }
  const entry = tables.links.find((candidate) => candidate.key === layout.link)
  if (entry === undefined) return `the link table has no ${layout.link}`
  const rdma = entry.class === 'rdma'
  const able = rdma ? machines.filter((machine) => (machine.chip?.rdmaPorts ?? 0) > 0) : machines
  const figures = linkFigures(entry)
  const link = (a: PlanMachine, b: PlanMachine): PlanLink => ({
    source: a.id,
    target: b.id,
    figures,
  })
  if (layout.shape === 'ring') {
    if (able.length < 2) return []
    return able
      .slice(0, able.length === 2 ? 1 : able.length)
      .map((machine, index) => link(machine, able[(index + 1) % able.length] ?? machine))
  }
  if (layout.shape === 'mesh') {
    const short = able.find((machine) => (machine.chip?.rdmaPorts ?? 0) < able.length - 1)
    if (short !== undefined)
      return `a mesh of ${able.length} needs ${able.length - 1} Thunderbolt 5 ports on each; ${short.chip?.key ?? short.name} has ${short.chip?.rdmaPorts ?? 0}. Use tb5-ring, or fewer machines`
  }
  return able.flatMap((a, index) => able.slice(index + 1).map((b) => link(a, b)))
}
