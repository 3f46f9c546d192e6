// What the cluster can serve, by the names people use: deployments first, then models that wait on disk.
import { aliases, wantedDeployments, type WantedDeployment } from '../cluster/desired.ts'
import type { ModelRef } from '../cluster/group-plan.ts'
import { type MachineState, liveRecords } from '../cluster/state.ts'
import { type DeploymentId, deploymentId } from '../ids.ts'

export interface ServedModel {
  readonly model: ModelRef
  readonly deployment: WantedDeployment | null
}

export type Lookup =
  | { readonly kind: 'found'; readonly served: ServedModel }
  /** `target` is what an alias of this name points to, when that is what is missing. */
  | { readonly kind: 'unknown'; readonly known: readonly string[]; readonly target: string | null }

/** Stable for a model name, so that loading it again replaces the wish instead of adding one. */
export function deploymentIdFor(modelName: string): DeploymentId {
  const slug = modelName
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|-+$/g, '')
  return deploymentId(slug === '' ? 'model' : slug.slice(0, 120))
}

/** In the order of this machine's own store, the starter first; then what is wanted, then what others have. */
export function servedModels(state: MachineState): readonly ServedModel[] {
  const deployments = wantedDeployments(state.registers)
  const served = new Map<string, ServedModel>()
  const add = (model: ModelRef): void => {
    if (served.has(model.name)) return
    const deployment = deployments.find((wanted) => wanted.model.name === model.name) ?? null
    served.set(model.name, { model: deployment?.model ?? model, deployment })
  }
  const [own, ...others] = liveRecords(state)
  for (const model of own?.models ?? []) add(model)
  for (const deployment of deployments) add(deployment.model)
  for (const record of others) for (const model of record.models) add(model)
  return [...served.values()]
}

/**
 * An alias, an exact name, the unique part behind a slash, or an alias that ends in "*", in this order: a
 * wildcard never hides a model. Names are only compared, never opened.
 */
export function lookUpModel(state: MachineState, name: string): Lookup {
  const all = servedModels(state)
  const known = aliases(state.registers)
  const asked = withoutDefaultTag(name)
  const alias = known.get(name) ?? known.get(asked) ?? null
  const found = findNamed(all, alias ?? asked)
  if (found !== null) return { kind: 'found', served: found }
  const wide = alias === null ? wildcardTarget(known, asked) : null
  const meant = wide === null ? null : findNamed(all, wide)
  if (meant !== null) return { kind: 'found', served: meant }
  return { kind: 'unknown', known: all.map(({ model }) => model.name), target: alias ?? wide }
}

/** Ollama's clients write a name without tag as "name:latest". */
function withoutDefaultTag(name: string): string {
  return name.endsWith(':latest') ? name.slice(0, -':latest'.length) : name
}

function findNamed(all: readonly ServedModel[], name: string): ServedModel | null {
  const wanted = name.toLowerCase()
  const exact = all.find(({ model }) => model.name.toLowerCase() === wanted)
  if (exact !== undefined) return exact
  const ending = all.filter(({ model }) => model.name.toLowerCase().endsWith(`/${wanted}`))
  return ending.length === 1 ? (ending[0] ?? null) : null
}

/** What the most specific alias with a star at its end says of this name. */
function wildcardTarget(known: ReadonlyMap<string, string>, name: string): string | null {
  let best: { readonly prefix: string; readonly target: string } | null = null
  for (const [alias, target] of known) {
    if (!alias.endsWith('*')) continue
    const prefix = alias.slice(0, -1)
    if (!name.startsWith(prefix)) continue
    if (best === null || prefix.length > best.prefix.length) best = { prefix, target }
  }
  return best?.target ?? null
}

/** What may be an alias: as clients send names, with a star at most at the end. */
export function isAliasName(name: string): boolean {
  return /^[A-Za-z0-9._:/@+-]{0,200}\*?$/.test(name) && name !== ''
}
