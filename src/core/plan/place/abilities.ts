// Whether the worker can run a plan, and if not, which word stands in the way: the worker's own, or
// the architecture's.
import { assertNever } from '../../assert.ts'
import type { Architecture } from '../model/architecture.ts'
import type { StrategyName, WorkerAbilities } from '../types.ts'

export function whyNotRun(
  strategy: StrategyName,
  inner: StrategyName,
  architecture: Architecture,
  abilities: WorkerAbilities,
): string | null {
  if (architecture.mlxFile === null)
    return `mlx-lm has no ${architecture.modelTypes[0] ?? 'such'} architecture yet`
  const { strategies, mlxFile } = architecture
  const need = (worker: boolean, model: boolean, what: string): string | null => {
    if (!worker) return `the worker does not run ${what} yet`
    return model ? null : `mlx-lm cannot cut ${mlxFile} models for ${what}`
  }
  switch (strategy) {
    case 'single':
      return null
    case 'pipeline':
      return need(abilities.pipeline, strategies.pipeline, 'pipelines')
    case 'tensor':
      return need(abilities.tensor, strategies.tensor, 'tensor splits')
    case 'uneven-tensor':
      return need(abilities.unevenTensor, strategies.unevenTensor, 'uneven tensor splits')
    case 'expert':
      return need(abilities.expert, strategies.expert, 'expert splits')
    case 'tensor-pipeline':
      return need(
        abilities.tensorPipeline,
        strategies.tensor && strategies.pipeline,
        'tensor worlds in a pipeline',
      )
    case 'replicas':
      if (!abilities.replicas) return 'the worker does not run replicas yet'
      return inner === 'replicas' ? null : whyNotRun(inner, inner, architecture, abilities)
    default:
      return assertNever(strategy)
  }
}
