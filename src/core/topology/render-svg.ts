// A topology as a picture: one self-contained SVG, light or dark as the viewer is. Machines stand on a
// circle, links are drawn between them, several links of one pair fan out.
import { formatMemory } from './format-memory.ts'
import type { Link, LinkClass } from './links.ts'
import { linkClassName } from './render-text.ts'
import type { Topology, TopologyMachine } from './topology.ts'

interface Point {
  readonly x: number
  readonly y: number
}

const card = { width: 190, height: 78 } as const
const margin = { side: 40, top: 64, bottom: 64 } as const
/** Links of one pair are drawn this far apart at their middle. */
const fanOut = 58

const classes: readonly LinkClass[] = ['rdma', 'thunderbolt-ip', 'ethernet', 'wifi']

const style = `
    .sheet { fill: #fbfaf7 } .card { fill: #fff; stroke: #d9d4c7 } .name { fill: #26221a; font-weight: 600; font-size: 15px }
    .fact, .legend { fill: #6f6857; font-size: 11.5px } .title { fill: #26221a; font-size: 17px; font-weight: 600 }
    .label { fill: #4a4435; font-size: 11px } .plate { fill: #fbfaf7; opacity: .92 }
    .link { fill: none; stroke-width: 2.5; stroke-linecap: round } .faulty { stroke-dasharray: 7 6 }
    .rdma { stroke: #2f8f4e } .thunderbolt-ip { stroke: #c98a1b } .ethernet { stroke: #4a78b5 } .wifi { stroke: #9a8fb8; stroke-dasharray: 2 6 }
    text { font-family: -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
    @media (prefers-color-scheme: dark) {
      .sheet { fill: #1d1b17 } .card { fill: #2a2721; stroke: #4b463b } .name, .title { fill: #f2eee3 }
      .fact, .legend { fill: #b3ab98 } .label { fill: #ddd6c5 } .plate { fill: #1d1b17 }
      .rdma { stroke: #5cc07c } .thunderbolt-ip { stroke: #e5ab46 } .ethernet { stroke: #79a7e3 } .wifi { stroke: #b8addb }
    }`

export function renderSvg(topology: Topology): string {
  const count = topology.machines.length
  const radius = circleRadius(count)
  const width = 2 * margin.side + card.width + 2 * radius.x
  const height =
    margin.top + margin.bottom + card.height + 2 * radius.y + networks(topology.links).length * 18
  const centre = { x: width / 2, y: margin.top + card.height / 2 + radius.y }
  const places = new Map(
    topology.machines.map((machine, index) => [
      machine.name,
      placeOf({ index, count, centre, radius }),
    ]),
  )
  const drawn = drawnLinks(topology.links)
  const links = drawn.map((link) =>
    drawLink(link, { drawn, places, names: topology.machines.map((one) => one.name) }),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `  <title>${escape(titleOf(topology))}</title>`,
    `  <style>${style}\n  </style>`,
    `  <rect class="sheet" width="${width}" height="${height}" rx="14"/>`,
    `  <text class="title" x="${margin.side}" y="38">${escape(titleOf(topology))}</text>`,
    // Lines first, then the plates of their labels, then the cards on top.
    ...links.map((link) => link.line),
    ...links.map((link) => link.label),
    ...topology.machines.map((machine) => drawCard(machine, places.get(machine.name) ?? centre)),
    drawNetworks(topology, height),
    drawLegend(drawn, height - 26),
    '</svg>',
    '',
  ].join('\n')
}

/** Networks join everyone with everyone, so they are drawn only where no cable does, and named below. */
function drawnLinks(links: readonly Link[]): readonly Link[] {
  const pair = ({ ends: [a, b] }: Link): string => JSON.stringify([a.machine, b.machine])
  const cabled = new Set(links.filter((link) => link.proof === 'cable').map(pair))
  return links.filter((link) => link.proof === 'cable' || !cabled.has(pair(link)))
}

interface Network {
  readonly class: LinkClass
  readonly gbps: number | null
  readonly machines: readonly string[]
}

function networks(links: readonly Link[]): readonly Network[] {
  const found: Network[] = []
  for (const link of links.filter((one) => one.proof === 'same-subnet')) {
    const gbps = link.gbps.known ? link.gbps.value : null
    const at = found.findIndex((one) => one.class === link.class && one.gbps === gbps)
    const machines = new Set([
      ...(found[at]?.machines ?? []),
      ...link.ends.map((end) => end.machine),
    ])
    const network = { class: link.class, gbps, machines: [...machines] }
    if (at === -1) found.push(network)
    else found[at] = network
  }
  return found
}

function drawNetworks(topology: Topology, height: number): string {
  return networks(topology.links)
    .map((network, index) => {
      const speed = network.gbps === null ? '' : ` ${network.gbps} Gb/s`
      const text = `${linkClassName(network.class)}${speed}: ${network.machines.join(', ')}`
      return `  <text class="legend" x="${margin.side}" y="${height - 50 - index * 18}">${escape(shorten(text, 110))}</text>`
    })
    .join('\n')
}

function titleOf(topology: Topology): string {
  const machines = topology.machines.length
  const cables = topology.links.filter((link) => link.proof === 'cable').length
  const hasMacs = topology.machines.some((machine) => machine.platform === 'macos')
  const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`
  // Only Macs tell of cables: none seen among others says nothing.
  return hasMacs
    ? `${plural(machines, 'machine')}, ${plural(cables, 'Thunderbolt cable')}`
    : `${plural(machines, 'machine')}, ${plural(topology.links.length, 'link')}`
}

/** Two machines stand side by side; more of them need room on a circle that grows with their number. */
function circleRadius(count: number): Point {
  if (count <= 1) return { x: 40, y: 0 }
  if (count === 2) return { x: 215, y: 20 }
  return { x: 150 + count * 38, y: 80 + count * 32 }
}

function placeOf(at: {
  readonly index: number
  readonly count: number
  readonly centre: Point
  readonly radius: Point
}): Point {
  if (at.count === 1) return at.centre
  const start = at.count === 2 ? Math.PI : -Math.PI / 2
  const angle = start + (2 * Math.PI * at.index) / at.count
  return {
    x: at.centre.x + at.radius.x * Math.cos(angle),
    y: at.centre.y + at.radius.y * Math.sin(angle),
  }
}

function drawCard(machine: TopologyMachine, at: Point): string {
  const left = round(at.x - card.width / 2)
  const top = round(at.y - card.height / 2)
  const known = (parts: readonly (string | null)[]): string =>
    parts.filter((part) => part !== null).join(' · ')
  const chip = machine.chip.known ? machine.chip.value : null
  const memory = machine.memoryBytes.known ? formatMemory(machine.memoryBytes.value) : null
  const system = machine.system.known
    ? `${machine.platform === 'macos' ? 'macOS' : 'Linux'} ${machine.system.value}`
    : null
  const lines = [
    chip ?? (machine.model.known ? machine.model.value : null) ?? '',
    known([memory, system ?? (machine.platform === 'macos' ? 'macOS' : 'Linux')]),
  ].filter((line) => line !== '')
  const text = (cls: string, dy: number, content: string): string =>
    `<text class="${cls}" x="${left + 14}" y="${top + dy}">${escape(shorten(content, cls === 'name' ? 22 : 32))}</text>`
  return [
    `  <g><rect class="card" x="${left}" y="${top}" width="${card.width}" height="${card.height}" rx="10"/>`,
    `    ${text('name', 27, machine.name)}`,
    ...lines.map((line, index) => `    ${text('fact', 46 + index * 18, line)}`),
    '  </g>',
  ].join('\n')
}

function drawLink(
  link: Link,
  on: {
    readonly drawn: readonly Link[]
    readonly places: ReadonlyMap<string, Point>
    readonly names: readonly string[]
  },
): { readonly line: string; readonly label: string } {
  const [a, b] = link.ends
  const from = on.places.get(a.machine) ?? { x: 0, y: 0 }
  const to = on.places.get(b.machine) ?? { x: 0, y: 0 }
  const siblings = on.drawn.filter(
    ({ ends: [x, y] }) => x.machine === a.machine && y.machine === b.machine,
  )
  const offset = (siblings.indexOf(link) - (siblings.length - 1) / 2) * fanOut
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1
  const normal = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length }
  // A quadratic curve passes at half the distance of its control point.
  const control = {
    x: (from.x + to.x) / 2 + normal.x * offset * 2,
    y: (from.y + to.y) / 2 + normal.y * offset * 2,
  }
  // Lines across the circle meet in its middle, so their labels stand nearer to one end.
  const steps = Math.abs(on.names.indexOf(a.machine) - on.names.indexOf(b.machine))
  const across = Math.min(steps, on.names.length - steps) > 1
  const middle = pointOnCurve({ from, control, to }, across ? 0.33 : 0.5)
  const faulty = link.proof === 'cable' && link.class !== 'rdma' ? ' faulty' : ''
  const line = `  <path class="link ${link.class}${faulty}" d="M${round(from.x)} ${round(from.y)} Q${round(control.x)} ${round(control.y)} ${round(to.x)} ${round(to.y)}"/>`
  return { line, label: drawLabel(labelOf(link), middle) }
}

function pointOnCurve(
  curve: { readonly from: Point; readonly control: Point; readonly to: Point },
  t: number,
): Point {
  const mix = (a: number, b: number, c: number): number =>
    (1 - t) ** 2 * a + 2 * (1 - t) * t * b + t ** 2 * c
  return {
    x: mix(curve.from.x, curve.control.x, curve.to.x),
    y: mix(curve.from.y, curve.control.y, curve.to.y),
  }
}

function labelOf(link: Link): readonly string[] {
  const [a, b] = link.ends
  const speed = link.gbps.known ? ` ${link.gbps.value} Gb/s` : ''
  const via = link.via.length > 0 ? [shorten(`via ${link.via.join(', ')}`, 24)] : []
  return [
    `${linkClassName(link.class)}${speed}`,
    `${a.interface ?? '?'} ↔ ${b.interface ?? '?'}`,
    ...via,
  ]
}

function drawLabel(lines: readonly string[], at: Point): string {
  const width = Math.max(...lines.map((line) => line.length)) * 6 + 12
  const height = lines.length * 14 + 6
  const top = at.y - height / 2
  const plate = `<rect class="plate" x="${round(at.x - width / 2)}" y="${round(top)}" width="${width}" height="${height}" rx="6"/>`
  const texts = lines.map(
    (line, index) =>
      `<tspan x="${round(at.x)}" y="${round(top + 14 + index * 14)}">${escape(line)}</tspan>`,
  )
  return `  <g>${plate}<text class="label" text-anchor="middle">${texts.join('')}</text></g>`
}

function drawLegend(links: readonly Link[], y: number): string {
  const shown = classes.filter((one) => links.some((link) => link.class === one))
  return shown
    .map((one, index) => {
      const x = margin.side + index * 140
      return `  <path class="link ${one}" d="M${x} ${y} h26"/><text class="legend" x="${x + 34}" y="${y + 4}">${escape(linkClassName(one))}</text>`
    })
    .join('\n')
}

const round = (value: number): number => Math.round(value * 10) / 10

function shorten(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
