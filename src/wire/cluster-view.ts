// What the cluster routes answer and the page and the command line read.
import { z } from 'zod'

const layerRange = z.tuple([z.number(), z.number()])

const range = z.object({ value: z.number(), low: z.number(), high: z.number() })

const rankView = z.object({
  rank: z.number(),
  machine: z.string(),
  machineId: z.string(),
  pid: z.number().nullable(),
  layers: layerRange,
  state: z.string(),
  phase: z.string(),
  fraction: z.number(),
  memoryBytes: z.number(),
  activeBytes: z.number(),
  tokens: z.number(),
})

const groupView = z.object({
  id: z.string(),
  status: z.string(),
  strategy: z.string(),
  /** Why it is as it is, in one sentence; null when a person fixed it. */
  why: z.string().nullable().default(null),
  /** What the planner expected of it: tokens per second of one request alone. */
  predicted: z.object({ tokensPerSecond: range, restsOn: z.string() }).nullable().default(null),
  /** Age of its present state. */
  sinceMs: z.number(),
  tokensPerSecond: z.number(),
  stages: z.array(
    z.object({
      layers: layerRange,
      /** How the ranks of the stage speak with each other, and why so; "none" for a rank alone. */
      backend: z.string(),
      backendWhy: z.string(),
      ranks: z.array(rankView),
    }),
  ),
})

export const deploymentView = z.object({
  id: z.string(),
  model: z.string(),
  digest: z.string(),
  strategy: z.string(),
  replicas: z.number(),
  status: z.enum(['ready', 'starting', 'waiting', 'degraded']),
  detail: z.string(),
  /** What the loss of each of its machines would do. */
  losses: z.array(
    z.object({
      machine: z.string(),
      survives: z.boolean(),
      gapMs: z.number().nullable(),
      how: z.string(),
    }),
  ),
  groups: z.array(groupView),
})

export const machineView = z.object({
  id: z.string(),
  name: z.string(),
  state: z.enum(['alive', 'suspect', 'dead']),
  role: z.string().nullable(),
  version: z.string().nullable(),
  platform: z.string().nullable(),
  memoryLendBytes: z.number().nullable(),
  memoryReservedBytes: z.number().nullable(),
  models: z.array(z.string()),
  /** Why no new rank may come here; null when one may. */
  refuses: z.string().nullable(),
  heardAgoMs: z.number(),
  links: z.array(z.object({ link: z.string(), heardAgoMs: z.number() })),
})

/** A machine that runs well under what was predicted for it. */
export const slowView = z.object({
  group: z.string(),
  model: z.string(),
  machine: z.string(),
  /** For how long. */
  sinceMs: z.number(),
  /** Speed against prediction: 0.6 is 40% under. */
  ratio: z.number(),
  cause: z.string(),
  advice: z.string(),
})

export const clusterView = z.object({
  self: z.string(),
  coordinator: z.string().nullable(),
  epoch: z.number(),
  machines: z.array(machineView),
  deployments: z.array(deploymentView),
  /** Ranks of what is no longer wanted: they still hold memory. */
  ending: z.array(
    z.object({ deployment: z.string(), machine: z.string(), group: z.string(), state: z.string() }),
  ),
  /** As far as this machine can tell: it keeps the books of the groups whose head it holds. */
  slow: z.array(slowView).default([]),
})

export type ClusterView = z.infer<typeof clusterView>
export type DeploymentView = z.infer<typeof deploymentView>
export type SlowView = z.infer<typeof slowView>
export type MachineView = z.infer<typeof machineView>
