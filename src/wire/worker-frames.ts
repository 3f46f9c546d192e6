// What crosses the pipe between an agent and its rank: one JSON object per line, on descriptors
// 3 (to the rank) and 4 (from it). The Python side checks the same shapes; both test the cases in
// test/contracts/frames, so a change here without one there fails on either side.
import { z } from 'zod'

const count = z.number().int().min(0)
const tokenId = z.number().int().min(0).max(0xffff_ffff)

/** A peer's socket for hidden states (pipeline) or for a world's rendezvous. */
const endpoint = z.object({ host: z.string(), port: z.number().int().min(1).max(65535) })

export const stageSchema = z.object({
  index: count,
  count: z.number().int().min(1),
  /** First layer held and the first one not held. */
  layers: z.tuple([count, count]),
})

/** The ranks that hold one stage together. A stage of one rank is a world of size 1 without backend. */
export const worldSchema = z.object({
  rank: count,
  size: z.number().int().min(1),
  backend: z.enum(['none', 'ring', 'jaccl', 'nccl']),
  strategy: z.enum(['none', 'tensor', 'expert']),
  /** Relative shares of the ranks; equal when empty. */
  shares: z.array(z.number().positive()),
  /** Environment that MLX's backend reads at init (MLX_RANK, MLX_HOSTFILE, …). */
  env: z.record(z.string(), z.string()),
  /** Files that the backend wants to be pointed to by a variable: its name, and what is in the file. */
  files: z.record(z.string(), z.string()),
})

/** The sockets between ranks: each listens once; leaders of stages dial the next stage and their followers. */
export const linksSchema = z.object({
  listen: endpoint.nullable(),
  next: endpoint.nullable(),
  followers: z.array(endpoint),
  /** From the last stage's leader to the head: token ids go back this way. */
  back: endpoint.nullable(),
})

export const loadFrame = z.object({
  kind: z.literal('load'),
  group: z.string(),
  /** Hash of the plan; ranks compare it before the first step. */
  plan: z.string(),
  engine: z.enum(['mlx', 'scripted']),
  model: z.object({ path: z.string(), digest: z.string(), name: z.string() }),
  dtype: z.enum(['auto', 'float32', 'bfloat16', 'float16']),
  stage: stageSchema,
  world: worldSchema,
  /** Its number through all stages of the group, the head being 0. */
  rank: count,
  links: linksSchema,
  secret: z.string(),
  limits: z.object({
    contextTokensMax: count,
    rowsMax: z.number().int().min(1),
    waitingMax: count,
    memoryBytesMax: count,
    chunkMsMax: z.number().int().min(1),
    prefixCacheBytesMax: count,
    /** For every wait for a neighbour once it is there: silent for so long, it is lost. */
    peerTimeoutMsMax: z.number().int().min(1),
    /** For the neighbours to be there at all; 30 s when absent. */
    connectTimeoutMsMax: z.number().int().min(1).optional(),
    /** How long a rank that has lost a neighbour waits for `relink` before it goes; 60 s when absent. */
    relinkWaitMsMax: count.optional(),
  }),
})

const toolCall = z.object({
  id: z.string().optional(),
  type: z.literal('function').optional(),
  function: z.object({ name: z.string(), arguments: z.unknown() }),
})

/** A chat message as the model's own template wants it. */
export const chatMessage = z.object({
  role: z.string(),
  content: z.string(),
  reasoning: z.string().optional(),
  name: z.string().optional(),
  toolCalls: z.array(toolCall).optional(),
  toolCallId: z.string().optional(),
})

export const promptSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('chat'),
    messages: z.array(chatMessage).min(1),
    tools: z.array(z.unknown()),
    /** Absent means "auto". */
    toolChoice: z
      .union([z.enum(['auto', 'none', 'required']), z.object({ name: z.string().min(1) })])
      .optional(),
    /** False: at most one call in the answer. Absent means true. */
    parallelToolCalls: z.boolean().optional(),
    /** Extra variables for the template, such as enable_thinking. */
    variables: z.record(z.string(), z.unknown()),
    /** The clock that the template may read: fixed per generation, so that a resume renders the same. */
    nowMs: z.number(),
  }),
  z.object({ kind: z.literal('text'), text: z.string() }),
  z.object({ kind: z.literal('ids'), ids: z.array(tokenId).min(1) }),
])

export const samplingSchema = z.object({
  temperature: z.number().min(0),
  topP: z.number().gt(0).max(1),
  topK: count,
  minP: z.number().min(0).max(1),
  repetitionPenalty: z.number().gt(0),
  presencePenalty: z.number(),
  frequencyPenalty: z.number(),
  logitBias: z.array(z.tuple([tokenId, z.number()])),
  /** 64 bits as a decimal string: JSON numbers would lose the low ones. */
  seed: z.string().regex(/^\d{1,20}$/),
})

export const grammarSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('json-object') }),
  z.object({ kind: z.literal('json-schema'), schema: z.unknown() }),
  z.object({ kind: z.literal('regex'), pattern: z.string() }),
  z.object({ kind: z.literal('lark'), text: z.string() }),
])

export const submitFrame = z.object({
  kind: z.literal('submit'),
  attempt: z.string(),
  /** Absent means "answer". A count is answered by accepted and an empty finished, an embedding by a finished with one part. */
  purpose: z.enum(['answer', 'count', 'embed', 'embed-start']).optional(),
  prompt: promptSchema,
  sampling: samplingSchema,
  /** Of the whole answer, replayed ids included. Null: as many as the context still holds. */
  tokensMax: z.number().int().min(1).nullable(),
  stop: z.array(z.string().min(1)),
  ignoreEos: z.boolean(),
  /** Null: none. 0: of the chosen token only. n: also the n most likely. */
  logprobs: z.number().int().min(0).max(20).nullable(),
  grammar: grammarSchema.nullable(),
  /** Ids that earlier attempts have already sent: replayed, never emitted again. */
  replay: z.array(tokenId),
  /** Requests share cached prefixes only within one scope (the caller's key). */
  cacheScope: z.string(),
})

export const cancelFrame = z.object({ kind: z.literal('cancel'), attempt: z.string() })
export const closeFrame = z.object({ kind: z.literal('close') })

/** A frame that another rank of the group asked its agent to carry here over the trusted path. */
export const relayedFrame = z.object({
  kind: z.literal('relayed'),
  from: count,
  body: z.record(z.string(), z.unknown()),
})

/**
 * To a rank that has lost a neighbour, or is about to: where its neighbours are now. It keeps weights and caches;
 * the head finds out which stage is new and what has to be computed again.
 */
export const relinkFrame = z.object({
  kind: z.literal('relink'),
  plan: z.string(),
  /** Counts how often the group has formed; `relinked` answers with it. */
  formation: count,
  links: linksSchema,
  secret: z.string(),
  /** When given, they must be the ones it holds. */
  layers: z.tuple([count, count]).optional(),
})

export const frameToWorker = z.discriminatedUnion('kind', [
  loadFrame,
  submitFrame,
  cancelFrame,
  closeFrame,
  relayedFrame,
  relinkFrame,
])

export const readyFrame = z.object({
  kind: z.literal('ready'),
  pid: count,
  device: z.string(),
  versions: z.record(z.string(), z.string()),
  contextTokens: count,
  vocabulary: count,
  rowsMax: count,
  weightsBytes: count,
  /** What one more token of one row costs in this rank's caches. */
  kvBytesPerToken: z.number().min(0),
  /** Whether rows may share a batch, by the self-test at load. */
  batching: z.enum(['merged', 'separate']),
  loadMs: z.number().min(0),
  canaryMs: z.number().min(0),
  /** What the tokenizer and template can do. */
  abilities: z.object({
    chat: z.boolean(),
    tools: z.boolean(),
    reasoning: z.boolean(),
    /** Absent means false. */
    grammar: z.boolean().optional(),
    embeddings: z.boolean().optional(),
  }),
})

export const progressFrame = z.object({
  kind: z.literal('progress'),
  phase: z.enum(['start', 'load', 'connect', 'self-test', 'canary', 'prefill']),
  attempt: z.string().nullable(),
  done: z.number().min(0),
  total: z.number().min(0),
})

export const acceptedFrame = z.object({
  kind: z.literal('accepted'),
  attempt: z.string(),
  promptTokens: count,
  cachedTokens: count,
})

export const partSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('content'), text: z.string() }),
  z.object({ type: z.literal('reasoning'), text: z.string() }),
  z.object({ type: z.literal('tool-call'), name: z.string(), arguments: z.string() }),
  /** A call as it is written; calls never interleave, so the pieces need no number. */
  z.object({ type: z.literal('tool-call-start'), name: z.string() }),
  z.object({ type: z.literal('tool-call-delta'), arguments: z.string() }),
  z.object({ type: z.literal('tool-call-end') }),
  /** The stop string that ended the answer. */
  z.object({ type: z.literal('stop'), text: z.string() }),
  /** Little-endian 32-bit floats in base64. */
  z.object({ type: z.literal('embedding'), data: z.string() }),
])

export const logprobSchema = z.object({
  text: z.string(),
  bytes: z.array(z.number().int().min(0).max(255)).optional(),
  logprob: z.number(),
  top: z.array(z.object({ token: tokenId, text: z.string(), logprob: z.number() })),
})

/** One row of a step: the token at `position` (0 is the first generated one) and the text it releases. */
export const stepRow = z.object({
  attempt: z.string(),
  position: count,
  token: tokenId,
  parts: z.array(partSchema),
  logprob: logprobSchema.optional(),
})

export const stepFrame = z.object({ kind: z.literal('step'), step: count, rows: z.array(stepRow) })

export const finishedFrame = z.object({
  kind: z.literal('finished'),
  attempt: z.string(),
  reason: z.enum(['stop', 'length', 'tool-calls', 'cancelled']),
  /** Text that was held back for a stop string or a marker and is now known to be wanted. */
  parts: z.array(partSchema),
  promptTokens: count,
  cachedTokens: count,
  completionTokens: count,
  reasoningTokens: count,
})

export const failedFrame = z.object({
  kind: z.literal('failed'),
  /** Null: the rank itself failed and is about to exit. Empty: a line that named no attempt was refused. */
  attempt: z.string().nullable(),
  code: z.string(),
  message: z.string(),
})

/** The step counter on its own: sent while there is work but no row to show, and once when idle. */
export const pulseFrame = z.object({
  kind: z.literal('pulse'),
  step: count,
  busy: z.boolean(),
})

export const statsFrame = z.object({
  kind: z.literal('stats'),
  step: count,
  rows: count,
  waiting: count,
  kvBytes: count,
  activeBytes: count,
  peakBytes: count,
  prefixCacheBytes: count,
  prefillTokensPerSecond: z.number().min(0),
  decodeTokensPerSecond: z.number().min(0),
})

export const relayFrame = z.object({
  kind: z.literal('relay'),
  to: z.array(count),
  body: z.record(z.string(), z.unknown()),
})

/** A neighbour is gone or makes no progress. The rank keeps what it holds and waits for `relink`. */
export const peerLostFrame = z.object({
  kind: z.literal('peer-lost'),
  rank: count,
  reason: z.string(),
})

export const relinkedFrame = z.object({
  kind: z.literal('relinked'),
  formation: count,
  /** Of the head: tokens that only the lost layers computed again, and rows that all stages read anew. */
  tokensReplayed: count,
  rowsAnew: count,
})

/** Why an answer paused though its attempt was not lost: until the ring was whole again, and to catch up. */
export const pauseSchema = z.object({
  cause: z.string(),
  waitedMs: z.number().min(0),
  reworkedMs: z.number().min(0),
})

export const pausedFrame = z.object({
  kind: z.literal('paused'),
  attempts: z.array(z.string()),
  pause: pauseSchema,
})

export const frameFromWorker = z.discriminatedUnion('kind', [
  readyFrame,
  progressFrame,
  acceptedFrame,
  stepFrame,
  finishedFrame,
  failedFrame,
  pulseFrame,
  statsFrame,
  relayFrame,
  peerLostFrame,
  relinkedFrame,
  pausedFrame,
])

export type LoadFrame = z.infer<typeof loadFrame>
export type SubmitFrame = z.infer<typeof submitFrame>
export type FrameToWorker = z.infer<typeof frameToWorker>
export type FrameFromWorker = z.infer<typeof frameFromWorker>
export type StepRow = z.infer<typeof stepRow>
