// A topology in words, for a terminal.
import { formatMemory } from './format-memory.ts'
import type { Stranger } from './cables.ts'
import type { Link, LinkClass, LinkEnd } from './links.ts'
import type { ShapeReport, Topology, TopologyMachine } from './topology.ts'

const className: Readonly<Record<LinkClass, string>> = {
  rdma: 'RDMA',
  'thunderbolt-ip': 'Thunderbolt IP',
  ethernet: 'Ethernet',
  wifi: 'Wi-Fi',
}

export function linkClassName(link: LinkClass): string {
  return className[link]
}

export function renderText(topology: Topology): string {
  const cabled = topology.links.filter((link) => link.proof === 'cable')
  const network = topology.links.filter((link) => link.proof === 'same-subnet')
  const strangers = (named: boolean): readonly Stranger[] =>
    topology.strangers.filter((one) => one.identityKnown === named)
  const sections = [
    section('Machines', topology.machines.map(machineLine)),
    section('Thunderbolt cables', cabled.flatMap(linkLines)),
    section('Networks that both have an address on', network.flatMap(linkLines)),
    section('Cables to machines that are not here', strangers(true).map(strangerLine)),
    section(
      'Cables whose other end was not named, so it may be here',
      strangers(false).map(strangerLine),
    ),
    section(
      'Listings that contradict each other',
      topology.contradictions.map((one) => `${one.machine}: ${one.detail}`),
    ),
    section('Shapes', shapeLines(topology)),
  ]
  return `${sections.filter((one) => one !== '').join('\n\n')}\n`
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines.map((line) => `  ${line}`)].join('\n')
}

function machineLine(machine: TopologyMachine): string {
  const facts = [
    machine.model.known ? machine.model.value : null,
    machine.chip.known ? machine.chip.value : null,
    machine.memoryBytes.known ? formatMemory(machine.memoryBytes.value) : null,
    machine.system.known
      ? `${machine.platform === 'macos' ? 'macOS' : 'Linux'} ${machine.system.value}`
      : null,
    machine.freePorts.length > 0 ? `free ports ${machine.freePorts.join(', ')}` : null,
  ].filter((one) => one !== null)
  return facts.length === 0 ? machine.name : `${machine.name}: ${facts.join(', ')}`
}

function linkLines(link: Link): readonly string[] {
  const [a, b] = link.ends
  const speed = link.gbps.known ? ` ${link.gbps.value} Gb/s` : ''
  const via = link.via.length > 0 ? ` through ${link.via.join(', ')}` : ''
  const line = `${endText(a)} ── ${className[link.class]}${speed}${via} ── ${endText(b)}`
  const notes = [...(link.rdma?.obstacles ?? []), ...(link.rdma?.doubts ?? [])]
  return [line, ...notes.map((note) => `  no RDMA: ${note}`)]
}

function endText(end: LinkEnd): string {
  const port = end.receptacle === null ? null : `port ${end.receptacle}`
  const details = [port, end.rdmaDevice ?? end.interface, end.address].filter((one) => one !== null)
  return `${end.machine} (${details.length === 0 ? 'port not printed' : details.join(', ')})`
}

function strangerLine(stranger: Stranger): string {
  const port = stranger.receptacle.known ? `port ${stranger.receptacle.value}` : 'a port'
  const model = stranger.peerModel.known ? ` (${stranger.peerModel.value})` : ''
  const via = stranger.via.length > 0 ? ` through ${stranger.via.join(', ')}` : ''
  return `${stranger.machine} ${port}${via}: ${stranger.peerName}${model}`
}

function shapeLines(topology: Topology): readonly string[] {
  if (topology.machines.length < 2) return ['one machine alone: no shape']
  const { rdma, thunderbolt, network } = topology
  // Only Macs tell of cables; and only what a better shape does not already give is worth a line.
  const hasMacs = topology.machines.some((machine) => machine.platform === 'macos')
  return [
    ...(hasMacs ? describeShape('RDMA', rdma, 'no RDMA between') : []),
    ...(hasMacs && !rdma.mesh
      ? describeShape('Thunderbolt', thunderbolt, 'no cable was seen between')
      : []),
    ...(rdma.mesh || thunderbolt.mesh
      ? []
      : describeShape('Network', network, 'no network in common for')),
  ]
}

function describeShape(over: string, shape: ShapeReport, lacking: string): readonly string[] {
  const lines: string[] = []
  const joined = over === 'Network' ? 'shares one' : 'is cabled (mesh)'
  if (shape.mesh) lines.push(`${over}: every pair ${joined}`)
  else if (shape.ring !== null)
    lines.push(`${over}: ring ${[...shape.ring, shape.ring[0]].join(' → ')}`)
  else lines.push(`${over}: neither mesh nor ring over all machines`)
  if (!shape.mesh) {
    const pairs = shape.missingPairs.map((pair) => pair.join('–')).join(', ')
    lines.push(`${over}: ${lacking} ${pairs}`)
    const groups = shape.groups.filter((group) => group.length > 1)
    if (groups.length > 0)
      lines.push(
        `${over}: groups that are a mesh ${groups.map((group) => group.join('+')).join(', ')}`,
      )
  }
  for (const { pair, cables } of shape.multiple)
    lines.push(
      `${over}: ${cables} ${over === 'Network' ? 'networks' : 'cables'} between ${pair.join(' and ')}`,
    )
  return lines
}
