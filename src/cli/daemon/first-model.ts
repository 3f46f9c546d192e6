// What a daemon serves when nobody has said anything yet.
import { wantedDeployments } from '../../core/cluster/desired.ts'
import type { ModelStore } from '../../models/store.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { Serving } from '../../runtime/serving.ts'
import type { Settings } from '../settings.ts'

/** A new home starts with the starter; whoever has wishes of their own keeps exactly those. */
export async function wantFirstModel(parts: {
  settings: Settings
  serving: Serving
  store: ModelStore
  machine: Machine
}): Promise<void> {
  const { settings, serving, store, machine } = parts
  if (settings.role === 'client' || settings.model === 'none') return
  if (settings.model !== null) {
    const { ref } = await store.resolve(settings.model)
    machine.post({
      kind: 'self-change',
      change: { models: store.list().map((model) => model.ref) },
    })
    if (
      !wantedDeployments(machine.state.registers).some(
        (wanted) => wanted.model.digest === ref.digest,
      )
    ) {
      await serving.want(ref)
    }
    return
  }
  const starter = store.list().find((model) => model.origin === 'starter')
  if (machine.state.registers.size === 0 && starter !== undefined) await serving.want(starter.ref)
}
