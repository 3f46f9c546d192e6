// What Ollama's clients may do to the files of this machine.
import type { ModelActions } from '../../gateway/ollama/routes.ts'
import { hubCacheDir } from '../../models/hub-cache.ts'
import { pullModel } from '../../models/hub-pull.ts'
import type { ModelStore } from '../../models/store.ts'
import type { Machine } from '../../runtime/machine.ts'
import type { Serving } from '../../runtime/serving.ts'
import type { CliContext } from '../command.ts'

export function modelActions(parts: {
  store: ModelStore
  machine: Machine
  serving: Serving
  env: CliContext['env']
}): ModelActions {
  const { store, machine, serving, env } = parts
  const tell = (): void => {
    const models = store.list().map((model) => model.ref)
    machine.post({ kind: 'self-change', change: { models } })
  }
  return {
    async pull(name, { progress, signal }) {
      await pullModel({
        name,
        cacheDir: hubCacheDir(env),
        endpoint: env['HF_ENDPOINT'] ?? 'https://huggingface.co',
        ...(env['HF_TOKEN'] === undefined ? {} : { token: env['HF_TOKEN'] }),
        progress({ phase, file, doneBytes, totalBytes }) {
          // What is fetched stays: the next pull goes on from there.
          signal.throwIfAborted()
          progress({ status: `${phase} ${file}`, doneBytes, totalBytes })
        },
      })
      await store.refresh()
      tell()
    },
    async remove(name) {
      const found = serving.lookUp(name)
      if (found.kind === 'found' && found.served.deployment !== null)
        return `${name} is loaded; unload it first`
      const model = store.byName(name)
      if (model === null) return `The files of ${name} are on another machine; remove them there`
      const refused = await store.remove(model)
      tell()
      return refused
    },
  }
}
