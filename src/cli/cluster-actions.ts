// What the cluster routes do beyond reading the state.
import type { Advice } from '../core/cluster/advice.ts'
import { registerKeys } from '../core/cluster/desired.ts'
import type { ClusterActions, LoadRequest } from '../gateway/cluster/routes.ts'
import type { LaunchActions } from '../gateway/cluster/launch-routes.ts'
import type { MembershipActions } from '../gateway/cluster/membership-routes.ts'
import type { ModelStore } from '../models/store.ts'
import type { Machine } from '../runtime/machine.ts'
import type { Serving } from '../runtime/serving.ts'
import type { Asked } from './daemon/advise.ts'
import type { FactsExchange } from './daemon/facts-exchange.ts'
import type { ProbeExchange } from './daemon/probe-exchange.ts'
import type { ScoreKeeper } from './daemon/score-keeper.ts'
import type { TelemetryExchange } from './daemon/telemetry-exchange.ts'
import { loadDeployment } from './load-action.ts'

export function clusterActions(parts: {
  machine: Machine
  serving: Serving
  store: ModelStore
  membership: MembershipActions
  launches: LaunchActions
  facts: FactsExchange
  probes: ProbeExchange
  scores: ScoreKeeper
  advise: (asked: Asked) => Promise<Advice>
  telemetry: TelemetryExchange
  nowMs: () => number
  stop: () => void
}): ClusterActions {
  const { machine, serving, store } = parts
  return {
    nowMs: parts.nowMs,
    stop: parts.stop,
    membership: parts.membership,
    launches: parts.launches,
    async load(request: LoadRequest) {
      try {
        return await loadDeployment(parts, request)
      } catch (error) {
        return { refused: error instanceof Error ? error.message : String(error) }
      }
    },
    async unload(name) {
      const found = serving.lookUp(name)
      if (found.kind === 'unknown' || found.served.deployment === null) {
        const loaded = serving.models().flatMap(({ deployment }) => deployment?.model.name ?? [])
        return { refused: `"${name}" is not loaded; loaded are: ${loaded.join(', ') || 'none'}` }
      }
      const { id } = found.served.deployment
      await new Promise<void>((resolve) => {
        machine.write([{ key: registerKeys.deployment(id), value: undefined }], () => resolve())
      })
      return { deployment: id }
    },
    facts: () => parts.facts.collect(),
    probe: (options, progress) => parts.probes.probe(options, progress),
    slow: () => parts.scores.slow(),
    telemetry: () => parts.telemetry.collect(),
    async listModels() {
      const { models } = await store.refresh()
      machine.post({ kind: 'self-change', change: { models: models.map((model) => model.ref) } })
      const wanted = new Set(
        serving.models().flatMap(({ deployment }) => deployment?.model.digest ?? []),
      )
      return models.map(({ ref, origin, path }) => ({
        name: ref.name,
        digest: ref.digest,
        architecture: ref.architecture,
        parameters: ref.parameters,
        bytes: ref.weightsBytes,
        contextTokens: ref.contextTokens,
        origin,
        path,
        loaded: wanted.has(ref.digest),
      }))
    },
  }
}
