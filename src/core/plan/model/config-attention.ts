// The attention block of one layer, read from a config: its shape and its parameters, split into what
// a tensor split cuts and what every rank keeps.
import type { Architecture } from './architecture.ts'
import type { ConfigReader } from './config-reader.ts'
import type { AttentionShape } from './shape.ts'

export interface AttentionBlock {
  readonly shape: AttentionShape
  readonly parameters: number
  readonly replicated: number
}

export function groupedAttention(
  config: ConfigReader,
  architecture: Architecture,
  options: { readonly hidden: number; readonly full: boolean },
): AttentionBlock {
  const { hidden, full } = options
  const queryHeads = config.size('num_attention_heads')
  const own = full ? architecture.fullLayers : undefined
  const kvHeads =
    (own === undefined ? null : config.optionalSize(own.kvHeads)) ??
    config.optionalSize('num_key_value_heads') ??
    queryHeads
  const headDim =
    (own === undefined ? null : config.optionalSize(own.headDim)) ??
    config.optionalSize('head_dim') ??
    Math.floor(hidden / queryHeads)
  const sharesKeyValue = own !== undefined && config.flag(own.sharedKeyValue) === true
  const queryMatrices = architecture.queryGate === true ? 2 : 1
  const windows = architecture.windows
  const window = full || windows === undefined ? null : config.optionalSize(windows.tokens)
  return {
    shape: {
      kind: 'grouped',
      queryHeads,
      kvHeads,
      headDim,
      valueDim: headDim,
      windowTokens: window,
    },
    parameters:
      hidden * queryHeads * headDim * (queryMatrices + 1) +
      hidden * kvHeads * headDim * (sharesKeyValue ? 1 : 2),
    replicated: 2 * headDim,
  }
}

export function latentAttention(
  config: ConfigReader,
  architecture: Architecture,
  hidden: number,
): AttentionBlock {
  const heads = config.size('num_attention_heads')
  const latentDim = config.size('kv_lora_rank')
  const ropeDim = config.size('qk_rope_head_dim')
  const nopeDim = config.size('qk_nope_head_dim')
  const valueDim = config.size('v_head_dim')
  const queryRank = config.optionalSize('q_lora_rank')
  const queryWidth = heads * (nopeDim + ropeDim)
  const indexHeads = architecture.indexer === true ? config.size('index_n_heads') : 0
  const indexDim = architecture.indexer === true ? config.size('index_head_dim') : 0
  const indexer =
    indexDim === 0
      ? 0
      : (queryRank ?? hidden) * indexHeads * indexDim + hidden * indexDim + hidden * indexHeads
  return {
    shape: {
      kind: 'latent',
      queryHeads: heads,
      latentDim,
      ropeDim,
      valueDim,
      sparseTokens: architecture.indexer === true ? config.size('index_topk') : null,
      indexDim,
      tokensPerEntry: 1,
    },
    parameters:
      (queryRank ?? hidden) * queryWidth +
      latentDim * heads * (nopeDim + valueDim) +
      heads * valueDim * hidden,
    replicated:
      (queryRank === null ? 0 : hidden * queryRank) + hidden * (latentDim + ropeDim) + indexer,
  }
}

/** The gated delta net of Qwen's hybrid models: a state per value head instead of a cache. */
export function deltaAttention(config: ConfigReader, hidden: number): AttentionBlock {
  const keyHeads = config.size('linear_num_key_heads')
  const valueHeads = config.size('linear_num_value_heads')
  const keyDim = config.size('linear_key_head_dim')
  const valueDim = config.size('linear_value_head_dim')
  const kernel = config.optionalSize('linear_conv_kernel_dim') ?? 4
  const keyWidth = keyHeads * keyDim
  const valueWidth = valueHeads * valueDim
  const convolved = 2 * keyWidth + valueWidth
  return {
    shape: {
      kind: 'recurrent',
      heads: keyHeads,
      stateElements: valueHeads * keyDim * valueDim + convolved * (kernel - 1),
    },
    parameters:
      hidden * (2 * keyWidth + 2 * valueWidth + 2 * valueHeads) +
      convolved * kernel +
      valueWidth * hidden,
    replicated: valueDim + 2 * valueHeads,
  }
}

/**
 * DeepSeek V4: one cache entry for `ratio` tokens, read sparsely, beside a short window of its own;
 * ratio 0 is the window alone.
 */
export function compressedAttention(
  config: ConfigReader,
  options: { readonly hidden: number; readonly ratio: number },
): AttentionBlock {
  const { hidden, ratio } = options
  const heads = config.size('num_attention_heads')
  const headDim = config.size('head_dim')
  const queryRank = config.size('q_lora_rank')
  const outputWidth = config.size('o_groups') * config.size('o_lora_rank')
  const width = heads * headDim
  const indexed = ratio > 0
  const indexWidth = indexed ? config.size('index_n_heads') * config.size('index_head_dim') : 0
  return {
    shape: {
      kind: 'latent',
      queryHeads: heads,
      latentDim: headDim,
      ropeDim: 0,
      valueDim: headDim,
      sparseTokens: indexed ? config.size('index_topk') * ratio : config.size('sliding_window'),
      indexDim: indexed ? config.size('index_head_dim') : 0,
      tokensPerEntry: indexed ? ratio : 1,
    },
    parameters: queryRank * width + width * config.size('o_lora_rank') + outputWidth * hidden,
    replicated:
      hidden * (queryRank + headDim) +
      (indexed ? queryRank * indexWidth + 3 * hidden * headDim : 0),
  }
}
