// What a model is made of, layer by layer, and how many parameters that gives. Everything the
// planner knows about a model is here; nothing asks for its name.
import { assertNever } from '../../assert.ts'

/** Attention with keys and values per head; a window limits what is kept and read. */
export interface GroupedAttention {
  readonly kind: 'grouped'
  readonly queryHeads: number
  readonly kvHeads: number
  readonly headDim: number
  readonly valueDim: number
  readonly windowTokens: number | null
}

/** Attention over one compressed latent per token (MLA); sparse variants read only the best tokens. */
export interface LatentAttention {
  readonly kind: 'latent'
  readonly queryHeads: number
  readonly latentDim: number
  readonly ropeDim: number
  readonly valueDim: number
  readonly sparseTokens: number | null
  /** Extra values kept per token by an indexer that picks the tokens to read. */
  readonly indexDim: number
  /** Tokens that share one cache entry, in models that also compress along the context. */
  readonly tokensPerEntry: number
}

/** A state of fixed size instead of a cache that grows (gated delta nets, state space models). */
export interface RecurrentAttention {
  readonly kind: 'recurrent'
  readonly stateElements: number
  /** Heads that a tensor split would cut. */
  readonly heads: number
}

export type AttentionShape = GroupedAttention | LatentAttention | RecurrentAttention

export interface ExpertShape {
  readonly count: number
  readonly active: number
  readonly parametersEach: number
}

/** One kind of layer. Parameters are split by what a tensor split can cut and what every rank keeps. */
export interface LayerKind {
  readonly attention: AttentionShape
  readonly attentionParameters: number
  readonly replicatedParameters: number
  /** A dense feed-forward block, and experts that every token visits. */
  readonly denseParameters: number
  readonly experts: ExpertShape | null
  /** The width of the feed-forward block that a tensor split cuts. */
  readonly feedForwardWidth: number
}

export interface ModelShape {
  /** The name of the model's file in mlx-lm. */
  readonly architecture: string
  readonly hidden: number
  readonly vocabulary: number
  readonly tiedEmbedding: boolean
  readonly contextTokensMax: number
  readonly kinds: readonly LayerKind[]
  /** For each layer the index of its kind. */
  readonly layers: readonly number[]
}

export interface ParameterCount {
  readonly total: number
  readonly active: number
  readonly embedding: number
  readonly head: number
}

export function layerParameters(kind: LayerKind): { total: number; active: number } {
  const always = kind.attentionParameters + kind.replicatedParameters + kind.denseParameters
  if (kind.experts === null) return { total: always, active: always }
  return {
    total: always + kind.experts.count * kind.experts.parametersEach,
    active: always + kind.experts.active * kind.experts.parametersEach,
  }
}

/** Parameters in all, and those that one token visits: the embedding is looked up, not multiplied. */
export function countParameters(shape: ModelShape): ParameterCount {
  const embedding = shape.vocabulary * shape.hidden
  const head = shape.tiedEmbedding ? 0 : embedding
  let total = embedding + head
  let active = embedding + head
  for (const index of shape.layers) {
    const kind = shape.kinds[index]
    if (kind === undefined) continue
    const layer = layerParameters(kind)
    total += layer.total
    active += layer.active
  }
  return { total, active, embedding, head }
}

/** Values kept in the cache for one more token, over the given layers. */
export function kvElementsPerToken(shape: ModelShape): number {
  let elements = 0
  for (const index of shape.layers) {
    const kind = shape.kinds[index]
    if (kind !== undefined) elements += attentionKvElements(kind.attention)
  }
  return elements
}

export function attentionKvElements(attention: AttentionShape): number {
  switch (attention.kind) {
    case 'grouped':
      return attention.kvHeads * (attention.headDim + attention.valueDim)
    case 'latent':
      return (
        (attention.latentDim + attention.ropeDim + attention.indexDim) / attention.tokensPerEntry
      )
    case 'recurrent':
      return 0
    default:
      return assertNever(attention)
  }
}

/** Whether all layers can be cut evenly among `ways` ranks: heads and feed-forward widths divide. */
export function dividesAmong(
  shape: ModelShape,
  ways: number,
): { ok: true } | { ok: false; why: string } {
  for (const kind of shape.kinds) {
    const heads =
      kind.attention.kind === 'recurrent' ? kind.attention.heads : kind.attention.queryHeads
    if (heads % ways !== 0)
      return { ok: false, why: `${heads} attention heads do not divide by ${ways}` }
    if (kind.attention.kind === 'grouped' && kind.attention.kvHeads % ways !== 0)
      return { ok: false, why: `${kind.attention.kvHeads} KV heads do not divide by ${ways}` }
    if (kind.feedForwardWidth % ways !== 0)
      return {
        ok: false,
        why: `a feed-forward width of ${kind.feedForwardWidth} does not divide by ${ways}`,
      }
  }
  return { ok: true }
}
