// Models that travel between simulated machines: a copy takes its time, and fails when its source is gone.
import type { ModelRef } from '../core/cluster/group-plan.ts'
import type { MachineId } from '../core/ids.ts'
import type { ModelFetcher } from '../runtime/machine.ts'
import type { SimHost } from './host.ts'
import type { Life } from './life.ts'
import type { World } from './world.ts'

const bytesPerMs = 2_000_000

export function copierOf(world: World, host: SimHost, life: Life): ModelFetcher {
  const coming = new Set<string>()
  const tell = (model: ModelRef, failure: string | null): void => {
    const { machine } = life
    const isHere = failure === null && !coming.has(model.digest)
    const fetches = isHere ? [] : [{ digest: model.digest, fraction: 0, failure }]
    machine.post({
      kind: 'self-change',
      change: { fetches, ...(isHere ? { models: host.models } : {}) },
    })
  }
  return {
    fetch(model: ModelRef, from: MachineId) {
      if (coming.has(model.digest)) return
      coming.add(model.digest)
      tell(model, null)
      host.clockOf(life).after(model.weightsBytes / bytesPerMs, () => {
        coming.delete(model.digest)
        const source = world.hosts.find((other) => other.spec.id === from)
        const isThere =
          source?.isRunning === true && source.models.some((one) => one.digest === model.digest)
        if (isThere) host.copied.push(model)
        tell(model, isThere ? null : 'its source is gone')
      })
    },
  }
}
