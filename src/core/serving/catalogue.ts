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
  | { readonly kind: 'unknown'; readonly known: readonly string[] }

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

/** An exact name, an alias, or the unique part behind a slash. Names are only compared, never opened. */
export function lookUpModel(state: MachineState, name: string): Lookup {
  const all = servedModels(state)
  const target = aliases(state.registers).get(name) ?? name
  const wanted = target.toLowerCase()
  const exact = all.find(({ model }) => model.name.toLowerCase() === wanted)
  if (exact !== undefined) return { kind: 'found', served: exact }
  const ending = all.filter(({ model }) => model.name.toLowerCase().endsWith(`/${wanted}`))
  const only = ending.length === 1 ? ending[0] : undefined
  if (only !== undefined) return { kind: 'found', served: only }
  return { kind: 'unknown', known: all.map(({ model }) => model.name) }
}
