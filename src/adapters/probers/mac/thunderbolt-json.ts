// system_profiler SPThunderboltDataType -json → outline. The JSON form speaks no human language, so
// it is the one we ask for.
import { type Fact, chainFact, known, unknown } from '../../../core/machine-facts/fact.ts'
import { type Json, type JsonObject, asArray, asObject, parseJson } from '../text.ts'
import { type RawNode, type RawServices, isFamiliarKey } from './thunderbolt-raw.ts'

export interface RawThunderbolt {
  readonly buses: readonly RawNode[]
  readonly unfamiliar: readonly string[]
}

export function readThunderboltJson(text: string): Fact<RawThunderbolt> {
  return chainFact(parseJson('system_profiler', text), (json) => {
    const buses = asArray(asObject(json)?.['SPThunderboltDataType'])
    if (buses === null)
      return unknown('not-understood', 'the output has no list "SPThunderboltDataType"')
    const unfamiliar = new Set<string>()
    return known({
      buses: buses.flatMap((bus) => readNode(bus, unfamiliar)),
      unfamiliar: [...unfamiliar].toSorted(),
    })
  })
}

function readNode(json: Json, unfamiliar: Set<string>): readonly RawNode[] {
  const node = asObject(json)
  if (node === null) return []
  for (const key of Object.keys(node))
    if (!isFamiliarKey(key)) unfamiliar.add(`SPThunderboltDataType ${key}`)
  return [
    {
      name: typeof node['_name'] === 'string' ? node['_name'] : '',
      values: stringsOf(node),
      port: readPort(node, unfamiliar),
      services: readServices(node['services_title']),
      complete: true,
      children: (asArray(node['_items']) ?? []).flatMap((item) => readNode(item, unfamiliar)),
    },
  ]
}

/**
 * A bus keeps its port under receptacle_1_tag whatever the port's number; a device keeps its upstream
 * port under a name of its own, and its further sockets are no business of ours.
 */
function readPort(node: JsonObject, unfamiliar: Set<string>): Record<string, string> | null {
  const port =
    asObject(node['receptacle_upstream_ambiguous_tag']) ?? asObject(node['receptacle_1_tag'])
  if (port === null) return null
  for (const key of Object.keys(port))
    if (!isFamiliarKey(key)) unfamiliar.add(`SPThunderboltDataType receptacle ${key}`)
  return stringsOf(port)
}

function readServices(json: Json | undefined): RawServices | null {
  const services = asArray(json)
  if (services === null) return null
  const protocolIds = services.map((service) => {
    const id = asObject(service)?.['protocol_id_key']
    return typeof id === 'number' ? id : null
  })
  return { protocolIds, complete: true }
}

function stringsOf(object: JsonObject): Record<string, string> {
  const values: Record<string, string> = {}
  for (const [key, value] of Object.entries(object))
    if (typeof value === 'string') values[key] = value
  return values
}
