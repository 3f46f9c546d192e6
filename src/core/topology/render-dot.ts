// A topology for Graphviz, line for line what mlx.distributed_config --dot prints for the same cables.
// What that tool cannot show (docks, networks) comes as further edges with a style of their own.
import type { Link } from './links.ts'
import { linkClassName } from './render-text.ts'
import type { Topology } from './topology.ts'

export function renderDot(topology: Topology): string {
  const ids = new Map(topology.machines.map((machine, index) => [machine.name, nodeId(index)]))
  const id = (machine: string): string => ids.get(machine) ?? 'unknown'
  const cabled = topology.links.filter((link) => link.proof === 'cable')
  const pairs = new Set(cabled.map(pairKey))
  const network = topology.links.filter(
    (link) => link.proof === 'same-subnet' && !pairs.has(pairKey(link)),
  )
  return [
    'graph G {',
    '  node [shape=rectangle];',
    ...topology.machines.map(
      (machine) => `  ${id(machine.name)} [label="${escape(machine.name)}"];`,
    ),
    ...[...cabled, ...network].map(
      ({ ends: [a, b], ...link }) =>
        `  ${id(a.machine)} -- ${id(b.machine)} [${attributes({ ends: [a, b], ...link })}]`,
    ),
    '}',
    '',
  ].join('\n')
}

const pairKey = ({ ends: [a, b] }: Link): string => JSON.stringify([a.machine, b.machine])

function attributes(link: Link): string {
  const [a, b] = link.ends
  const label = `${a.interface ?? '?'}/${b.interface ?? '?'}`
  if (link.via.length > 0)
    return `label="${escape(`${label} via ${link.via.join(', ')}`)}", style=dashed`
  return link.proof === 'cable'
    ? `label="${escape(label)}"`
    : `label="${escape(`${label} ${linkClassName(link.class)}`)}", style=dotted`
}

/** a … z, then ab, bb …: the same names as MLX gives, so that two pictures can be compared. */
function nodeId(index: number): string {
  let name = ''
  let rest = index
  do {
    name += String.fromCharCode(97 + (rest % 26))
    rest = Math.floor(rest / 26)
  } while (rest > 0)
  return name
}

function escape(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
}
