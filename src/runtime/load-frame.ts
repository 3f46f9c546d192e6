// The first frame a rank gets: its part of the plan, and the limits it must keep.
import { assert } from '../core/assert.ts'
import { type GroupPlan, planHash, placedRanks } from '../core/cluster/group-plan.ts'
import type { Endpoint } from '../core/cluster/record.ts'
import { limits } from '../core/limits.ts'
import type { LoadFrame } from '../wire/worker-frames.ts'

export interface ModelFiles {
  readonly path: string
  readonly engine: 'mlx' | 'scripted'
}

export function loadFrameFor(start: {
  plan: GroupPlan
  rank: number
  endpoints: readonly (Endpoint | null)[]
  secret: string
  files: ModelFiles
}): LoadFrame {
  const { plan, rank, files } = start
  const placed = placedRanks(plan)[rank]
  const stage = placed === undefined ? undefined : plan.stages[placed.stage]
  assert(
    placed !== undefined && stage !== undefined,
    `rank ${rank} is in the plan of ${plan.group}`,
  )
  return {
    kind: 'load',
    group: plan.group,
    plan: planHash(plan),
    engine: files.engine,
    model: { path: files.path, digest: plan.model.digest, name: plan.model.name },
    dtype: 'auto',
    stage: { index: placed.stage, count: plan.stages.length, layers: [...stage.layers] },
    world: {
      rank: placed.worldRank,
      size: stage.ranks.length,
      backend: stage.backend,
      strategy: stage.worldStrategy,
      shares: stage.ranks.map((other) => other.share),
      env: {},
      files: {},
    },
    rank,
    links: { listen: start.endpoints[rank] ?? null, next: null, followers: [], back: null },
    secret: start.secret,
    limits: {
      contextTokensMax: plan.contextTokens,
      rowsMax: limits.rowsPerGroupMax,
      waitingMax: limits.waitingPerGroupMax,
      memoryBytesMax: placed.memoryBytes,
      chunkMsMax: limits.prefillChunkMsMax,
      prefixCacheBytesMax: Math.floor(placed.memoryBytes / 4),
      peerTimeoutMsMax: limits.rankStallMsMax,
    },
  }
}
