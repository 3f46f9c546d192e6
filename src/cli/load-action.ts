// Turns what a person typed after "bushel load" into a deployment, or says why it cannot be, before anything
// that runs is touched.
import type { Advice } from '../core/cluster/advice.ts'
import { type Deployment, type RosterEntry, isNamed, roster } from '../core/cluster/desired.ts'
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { MachineState } from '../core/cluster/state.ts'
import { isOpen, questionFor } from '../core/coordinator/advice.ts'
import type { PlacementOutcome } from '../core/coordinator/placement.ts'
import { previewPlacement } from '../core/coordinator/preview.ts'
import type { MachineId } from '../core/ids.ts'
import type { Asked } from './daemon/advise.ts'
import type { LoadRequest } from '../gateway/cluster/routes.ts'
import { ModelNotFoundError, type ModelStore } from '../models/store.ts'
import type { Machine } from '../runtime/machine.ts'
import type { Serving } from '../runtime/serving.ts'

export async function loadDeployment(
  parts: {
    machine: Machine
    serving: Serving
    store: ModelStore
    advise: (asked: Asked) => Promise<Advice>
  },
  request: LoadRequest,
): Promise<{ deployment: string } | { refused: string }> {
  const { machine, serving } = parts
  const ref = await findModel(parts, request.model)
  const machines = machineIds(machine.state, request.machines)
  if (typeof machines === 'string') return { refused: machines }
  const { strategy, layers, backend, devices, replicas, standby } = request
  const asked: Partial<Deployment> = {
    strategy,
    machines,
    layers,
    backend,
    replicas,
    standby,
    contextTokens: Math.min(request.contextTokens ?? ref.contextTokens, ref.contextTokens),
    ...(devices === undefined ? {} : { devices }),
  }
  const { id: self, boot } = machine.state.self
  const version = { counter: 0, machine: self, boot }
  const bare = { ...serving.deploymentOf(ref, asked), version }
  const groups = replicas + (standby ? 1 : 0)
  const question = questionFor(machine.state, { deployment: bare, groups, avoid: [] })
  const advice = isOpen(bare) ? await parts.advise({ deployment: bare, question }) : undefined
  const options = advice === undefined ? asked : { ...asked, advice }
  const wanted = { ...serving.deploymentOf(ref, options), version }
  let outcome = previewPlacement(machine.state, wanted)
  // A machine that has just come is heard by one before it is heard by all.
  for (let waited = 0; waited < settleMsMax && isUnsettled(outcome); waited += settleStepMs) {
    await new Promise((resolve) => setTimeout(resolve, settleStepMs))
    outcome = previewPlacement(machine.state, wanted)
  }
  if (outcome.kind === 'refused') return { refused: `${ref.name} cannot run so: ${outcome.reason}` }
  const { id } = await serving.want(ref, options)
  return { deployment: id }
}

const settleMsMax = 3000
const settleStepMs = 100

function isUnsettled(outcome: PlacementOutcome): boolean {
  return outcome.kind === 'refused' && /do not hear each other|reachable/.test(outcome.reason)
}

/** From this machine's disk, or by name from anything the cluster has. */
async function findModel(
  { machine, serving, store }: { machine: Machine; serving: Serving; store: ModelStore },
  name: string,
): Promise<ModelRef> {
  try {
    const { ref } = await store.resolve(name)
    machine.post({
      kind: 'self-change',
      change: { models: store.list().map((model) => model.ref) },
    })
    return ref
  } catch (error) {
    const elsewhere = serving.lookUp(name)
    if (error instanceof ModelNotFoundError && elsewhere.kind === 'found')
      return elsewhere.served.model
    throw error
  }
}

function machineIds(state: MachineState, names: readonly string[]): readonly MachineId[] | string {
  const all = [...roster(state.registers).values()]
  const known = (entry: RosterEntry): string =>
    entry.machine === state.self.id ? state.self.name : entry.name
  const others: readonly { machine: MachineId; name: string }[] =
    all.length > 0
      ? all.map((entry) => ({ machine: entry.machine, name: known(entry) }))
      : [{ machine: state.self.id, name: state.self.name }]
  const ids: MachineId[] = []
  for (const name of names) {
    const found = others.find((one) => isNamed(one, name))
    if (found === undefined)
      return `there is no machine "${name}" in this cluster; there are: ${others.map((one) => one.name).join(', ')}`
    const status =
      found.machine === state.self.id ? 'alive' : state.peers.get(found.machine)?.status
    if (status !== 'alive') return `${name} is not reachable now`
    if (ids.includes(found.machine)) return `${name} is named twice`
    ids.push(found.machine)
  }
  return ids
}
