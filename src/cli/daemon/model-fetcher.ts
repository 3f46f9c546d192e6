// Brings models from other machines to this one, one copy for each at a time, and says in the machine's own
// record how far it is or why it failed.
import { copyModel, modelServices } from '../../adapters/peers/model-copy.ts'
import type { ModelRef } from '../../core/cluster/group-plan.ts'
import type { ModelFetch } from '../../core/cluster/record.ts'
import type { MachineId, ModelDigest } from '../../core/ids.ts'
import { hashFile } from '../../models/digest.ts'
import type { ModelStore } from '../../models/store.ts'
import type { Machine, ModelFetcher, Notes } from '../../runtime/machine.ts'
import type { Peers } from './peers.ts'

/** Progress is told in steps of a fiftieth: every word of it goes to every machine. */
const stepsTold = 50

export class ModelFetches implements ModelFetcher {
  readonly #parts: { machine: () => Machine; peers: Peers; store: ModelStore; notes: Notes }
  readonly #fetches = new Map<ModelDigest, ModelFetch>()

  constructor(parts: { machine: () => Machine; peers: Peers; store: ModelStore; notes: Notes }) {
    this.#parts = parts
    const { peers, store } = parts
    for (const service of modelServices({ filesOf: (digest) => store.manifest(digest) }))
      peers.bulk.provide(service)
  }

  fetch(model: ModelRef, from: MachineId): void {
    const known = this.#fetches.get(model.digest)
    if (known !== undefined && known.failure === null) return
    void this.#copy(model, from)
  }

  async #copy(model: ModelRef, from: MachineId): Promise<void> {
    const { peers, store, notes } = this.#parts
    const { digest, name } = model
    this.#tell({ digest, fraction: 0, failure: null })
    notes.note('info', 'copying a model from another machine', { model: name, from })
    let told = 0
    try {
      await copyModel(peers.bulk, {
        from,
        digest,
        destination: store.copyFolder(model),
        hashFile,
        progress: ({ doneBytes, totalBytes }) => {
          const step = Math.floor((doneBytes / Math.max(1, totalBytes)) * stepsTold)
          if (step <= told) return
          told = step
          this.#tell({ digest, fraction: step / stepsTold, failure: null })
        },
      })
      await store.refresh()
      if (store.byDigest(digest) === null)
        throw new Error(`the copy of ${name} is not the model that was asked for`)
      this.#fetches.delete(digest)
      this.#publish({ models: store.list().map((one) => one.ref) })
      notes.note('info', 'the model is here', { model: name })
    } catch (error) {
      const failure = (error instanceof Error ? error.message : String(error)).slice(0, 300)
      notes.note('warn', 'copying a model failed', { model: name, from, failure })
      this.#tell({ digest, fraction: 0, failure })
    }
  }

  #tell(fetch: ModelFetch): void {
    this.#fetches.set(fetch.digest, fetch)
    this.#publish({})
  }

  #publish(change: { models?: readonly ModelRef[] }): void {
    const fetches = [...this.#fetches.values()]
    this.#parts.machine().post({ kind: 'self-change', change: { ...change, fetches } })
  }
}
