// The cluster messages and heartbeats as they cross the wire. What does not fit is dropped, whoever sent it.
import { z } from 'zod'
import type { ClusterMessage, Heartbeat } from '../core/cluster/messages.ts'
import { roles } from '../core/cluster/record.ts'
import { deploymentSchema, digestSchema, groupSchema, machineSchema } from './id-schema.ts'
import { epochSchema, registerEntrySchema } from './journal-file.ts'

const machine = machineSchema
const deployment = deploymentSchema
const group = groupSchema
const digest = digestSchema
const count = z.number().int().min(0)
const amount = z.number().min(0)
const shortText = z.string().max(2000)

export const heartbeatSchema = z.object({
  boot: z.string().max(64),
  incarnation: count,
  revision: count,
  digest: z.string().max(64),
  epoch: epochSchema,
  role: z.enum(roles),
  hears: z.array(machine).max(256),
  follows: machine.nullable(),
})

const address = { host: z.string().max(255), port: z.number().int().min(1).max(65535) }
const endpoint = z.object({ ...address, ring: z.object(address).exactOptional() })

const device = z.string().max(64)
const deviceMatrix = z
  .array(z.array(z.union([device, z.array(device).max(16), z.null()])).max(64))
  .max(64)

const modelRef = z.object({
  name: z.string().min(1).max(500),
  digest,
  architecture: z.string().max(200),
  layers: z.number().int().min(1).max(10_000),
  weightsBytes: amount,
  parameters: amount,
  kvBytesPerToken: amount,
  contextTokens: count,
  defaults: z.object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    topK: z.number().optional(),
    repetitionPenalty: z.number().optional(),
  }),
  cut: z
    .object({
      pipeline: z.boolean(),
      tensor: z.enum(['no', 'even', 'uneven']),
      expert: z.boolean(),
      heads: count,
      kvHeads: count,
      experts: count,
      edgeFraction: z.number().min(0).max(1),
      tied: z.boolean(),
    })
    .exactOptional(),
  embeds: z.boolean().optional(),
  reasons: z.boolean().optional(),
})

const range = z.object({ value: amount, low: amount, high: amount })

/** Why a group was placed so. */
const placedReason = z.object({
  why: z.string().max(2000),
  kbFindings: z.array(count).max(64),
  predicted: z
    .object({ tokensPerSecond: range, firstTokenSeconds: range, restsOn: z.string().max(200) })
    .nullable(),
})

const groupPlan = z.object({
  group,
  formation: count,
  deployment,
  model: modelRef,
  strategy: z.enum(['single', 'pipeline', 'tensor', 'expert', 'tensor-pipeline']),
  contextTokens: count,
  stages: z
    .array(
      z.object({
        layers: z.tuple([count, count]),
        ranks: z
          .array(z.object({ machine, memoryBytes: amount, share: z.number().positive() }))
          .min(1)
          .max(64),
        backend: z.enum(['none', 'ring', 'jaccl', 'nccl']),
        worldStrategy: z.enum(['none', 'tensor', 'expert']),
        devices: deviceMatrix.exactOptional(),
        meeting: z.string().max(64).exactOptional(),
        why: z.string().max(1000).exactOptional(),
      }),
    )
    .min(1)
    .max(64),
  reason: placedReason.exactOptional(),
})

const holding = z.object({
  plan: groupPlan,
  planHash: z.string().max(64),
  rank: count,
  epoch: epochSchema,
  wish: count.exactOptional(),
  state: z.enum(['reserved', 'starting', 'loading', 'ready', 'orphaned', 'stopping']),
  sinceMs: z.number(),
  pid: count.nullable(),
  endpoint: endpoint.nullable(),
  phase: z.string().max(200),
  fraction: z.number(),
  tokens: count,
  contextTokens: count,
  activeBytes: amount,
  tokensPerSecond: amount,
  queue: count.exactOptional(),
  usedMs: z.number().exactOptional(),
  loadMs: amount.exactOptional(),
})

const failure = z.object({
  deployment,
  wish: count,
  group,
  formation: count.exactOptional(),
  rank: count,
  cause: shortText,
  excused: z.boolean(),
  atMs: z.number(),
})

const machineRecord = z.object({
  id: machine,
  name: z.string().min(1).max(63),
  role: z.enum(roles),
  boot: z.string().max(64),
  incarnation: count,
  revision: count,
  version: z.string().max(64),
  platform: z.string().max(64),
  computesIn: z.enum(['float32', 'stored']),
  memoryLendBytes: amount,
  memoryBandwidth: amount.exactOptional(),
  models: z.array(modelRef).max(1000),
  fetches: z
    .array(z.object({ digest, fraction: z.number(), failure: shortText.nullable() }))
    .max(100)
    .exactOptional(),
  holdings: z.array(holding).max(256),
  failures: z.array(failure).max(256),
  epochSeen: epochSchema,
  accepts: z.object({ ok: z.boolean(), reason: shortText }),
})

const formation = { group, formation: count }

export const clusterMessageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('record'), record: machineRecord }),
  z.object({ kind: z.literal('record-ask') }),
  z.object({ kind: z.literal('registers'), entries: z.array(registerEntrySchema).max(100_000) }),
  z.object({ kind: z.literal('registers-ask') }),
  z.object({
    kind: z.literal('group-prepare'),
    epoch: epochSchema,
    wish: count,
    plan: groupPlan,
    version: z.string().max(64),
  }),
  z.object({
    kind: z.literal('group-prepared'),
    ...formation,
    endpoints: z.array(z.object({ rank: count, endpoint: endpoint.nullable() })).max(64),
  }),
  z.object({
    kind: z.literal('group-refused'),
    ...formation,
    reason: shortText,
    epochSeen: epochSchema,
  }),
  z.object({
    kind: z.literal('group-commit'),
    epoch: epochSchema,
    ...formation,
    endpoints: z.array(endpoint.nullable()).max(64),
    secret: z.string().max(500),
  }),
  z.object({
    kind: z.literal('model-fetch'),
    epoch: epochSchema,
    model: modelRef,
    from: machine,
  }),
  z.object({
    kind: z.literal('group-stop'),
    epoch: epochSchema,
    group,
    deployment,
    reason: shortText,
    drain: z.boolean(),
    except: z.string().max(64).exactOptional(),
    reservedOnly: z.boolean().exactOptional(),
  }),
])

/** Null for anything that is not exactly a cluster message. */
export function parseClusterMessage(value: unknown): ClusterMessage | null {
  const parsed = clusterMessageSchema.safeParse(value)
  return parsed.success ? (parsed.data as unknown as ClusterMessage) : null
}

export function parseHeartbeat(value: unknown): Heartbeat | null {
  const parsed = heartbeatSchema.safeParse(value)
  return parsed.success ? parsed.data : null
}
