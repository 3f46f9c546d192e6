// The first frame a rank gets: its part of the plan, whom it speaks to, and the limits it must keep.
import { assert } from '../core/assert.ts'
import { type RankEnvironment, ringEnvironment } from '../core/backends/rank-environment.ts'
import {
  type GroupPlan,
  type StagePlan,
  planHash,
  placedRanks,
} from '../core/cluster/group-plan.ts'
import { rankLinks } from '../core/cluster/rank-links.ts'
import type { Endpoint } from '../core/cluster/record.ts'
import type { MachineId } from '../core/ids.ts'
import { limits } from '../core/limits.ts'
import type { FrameToWorker, LoadFrame } from '../wire/worker-frames.ts'
import { jacclWorld, ncclWorld } from './world-environment.ts'

export interface ModelFiles {
  readonly path: string
  readonly engine: 'mlx' | 'scripted'
}

export interface RankStart {
  readonly plan: GroupPlan
  readonly rank: number
  readonly endpoints: readonly (Endpoint | null)[]
  readonly secret: string
  readonly files: ModelFiles
  /** The address of another machine's rank as it is dialled from here. */
  readonly dialable?: (endpoint: Endpoint, machine: MachineId) => Endpoint
}

export function loadFrameFor(start: RankStart): LoadFrame {
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
      ...worldOf(start, stage, placed),
    },
    rank,
    links: linksOf(start),
    secret: start.secret,
    limits: {
      contextTokensMax: plan.contextTokens,
      rowsMax: limits.rowsPerGroupMax,
      waitingMax: limits.waitingPerGroupMax,
      memoryBytesMax: placed.memoryBytes,
      chunkMsMax: limits.prefillChunkMsMax,
      prefixCacheBytesMax: Math.floor(placed.memoryBytes / 4),
      peerTimeoutMsMax: limits.rankStallMsMax,
      relinkWaitMsMax: limits.orphanMsMax,
    },
  }
}

/** To a rank that stays when its group is put together anew. */
export function relinkFrameFor(start: Omit<RankStart, 'files'>): FrameToWorker {
  const { plan, secret } = start
  return {
    kind: 'relink',
    plan: planHash(plan),
    formation: plan.formation,
    links: linksOf(start),
    secret,
  }
}

function linksOf(start: Omit<RankStart, 'files'>): LoadFrame['links'] {
  const { plan, rank, endpoints, dialable } = start
  const ranks = placedRanks(plan)
  const { from, next, followers, back } = rankLinks(plan, rank)
  const plain = ({ host, port }: Endpoint): { host: string; port: number } => ({ host, port })
  const dial = (other: number): { host: string; port: number } => {
    const endpoint = endpoints[other]
    const machine = ranks[other]?.machine
    assert(
      endpoint != null && machine !== undefined,
      `rank ${other} of ${plan.group} can be dialled`,
    )
    return plain(dialable === undefined ? endpoint : dialable(endpoint, machine))
  }
  const own = from === null ? null : (endpoints[rank] ?? null)
  return {
    listen: own === null ? null : plain(own),
    next: next === null ? null : dial(next),
    followers: followers.map(dial),
    back: back === null ? null : dial(back),
  }
}

function worldOf(
  { endpoints }: RankStart,
  stage: StagePlan,
  me: { rank: number; worldRank: number },
): { env: Record<string, string>; files: Record<string, string> } {
  if (stage.ranks.length < 2) return { env: {}, files: {} }
  const leader = me.rank - me.worldRank
  const rings = stage.ranks.map((_, index) => endpoints[leader + index]?.ring)
  const addresses = rings.map((ring) => {
    assert(ring !== undefined, 'every rank of a world has an address for collectives')
    return [`${ring.host}:${ring.port}`]
  })
  const world = { rank: me.worldRank, size: stage.ranks.length, addresses }
  if (stage.backend === 'jaccl') return flat(jacclWorld(world, stage.devices ?? []))
  if (stage.backend === 'nccl') return flat(ncclWorld(world))
  return flat(ringEnvironment(world))
}

function flat({ set, files }: RankEnvironment): {
  env: Record<string, string>
  files: Record<string, string>
} {
  return {
    env: { ...set },
    files: Object.fromEntries(files.map(({ variable, content }) => [variable, content])),
  }
}
