// Turns the config.json of an MLX model folder into a shape, by the architecture's own rules. What it
// does not know it refuses, naming the key.
import type { Architecture } from './architecture.ts'
import { assertNever } from '../../assert.ts'
import {
  type AttentionBlock,
  compressedAttention,
  deltaAttention,
  groupedAttention,
  latentAttention,
} from './config-attention.ts'
import { type ConfigReader, ConfigGap, readConfig } from './config-reader.ts'
import type { ExpertShape, LayerKind, ModelShape } from './shape.ts'
import type { WeightFormat } from './work.ts'

export type ConfigOutcome =
  | {
      readonly kind: 'understood'
      readonly shape: ModelShape
      readonly architecture: Architecture
      readonly format: WeightFormat
    }
  | { readonly kind: 'refused'; readonly message: string }

const sizeLimits = { layers: 2000, hidden: 200_000, vocabulary: 5_000_000 } as const

export function shapeFromConfig(
  config: Readonly<Record<string, unknown>>,
  architectures: readonly Architecture[],
): ConfigOutcome {
  const modelType = typeof config['model_type'] === 'string' ? config['model_type'] : null
  if (modelType === null)
    return {
      kind: 'refused',
      message: 'config.json names no model_type, so its layers cannot be read',
    }
  const architecture = architectures.find((entry) => entry.modelTypes.includes(modelType))
  if (architecture === undefined)
    return {
      kind: 'refused',
      message: `the architecture "${modelType}" is not in the table yet; the planner cannot size it (data/architectures.json)`,
    }
  const nested = config['text_config']
  const text =
    typeof nested === 'object' && nested !== null
      ? { ...config, ...(nested as Record<string, unknown>) }
      : config
  try {
    const reader = readConfig(text)
    return {
      kind: 'understood',
      shape: buildShape(reader, architecture),
      architecture,
      format: formatOf(config, text),
    }
  } catch (error) {
    if (error instanceof ConfigGap)
      return { kind: 'refused', message: `config.json of a ${modelType} model: ${error.message}` }
    throw error
  }
}

function buildShape(config: ConfigReader, architecture: Architecture): ModelShape {
  const hidden = config.size('hidden_size', sizeLimits.hidden)
  const vocabulary = config.size('vocab_size', sizeLimits.vocabulary)
  const count = config.size('num_hidden_layers', sizeLimits.layers)
  const kinds: LayerKind[] = []
  const seen = new Map<string, number>()
  const layers: number[] = []
  for (let layer = 0; layer < count; layer++) {
    const full = attendsFully(config, architecture, layer)
    const withExperts = hasExperts(config, architecture, layer)
    const ratio = architecture.attention === 'compressed' ? compressionOf(config, layer) : 0
    const key = `${full}/${withExperts}/${ratio}`
    let index = seen.get(key)
    if (index === undefined) {
      index = kinds.length
      kinds.push(layerKind(config, architecture, { hidden, full, withExperts, ratio }))
      seen.set(key, index)
    }
    layers.push(index)
  }
  return {
    architecture: architecture.mlxFile ?? architecture.modelTypes[0] ?? 'unknown',
    hidden,
    vocabulary,
    tiedEmbedding: config.flag('tie_word_embeddings') ?? architecture.tiedByDefault,
    contextTokensMax: config.optionalSize('max_position_embeddings') ?? Infinity,
    kinds,
    layers,
  }
}

/** Whether a layer attends to the whole context; layer_types wins over a fixed pattern. */
function attendsFully(config: ConfigReader, architecture: Architecture, layer: number): boolean {
  const types = config.texts('layer_types')
  const type = types?.[layer]
  if (type !== undefined) return type === 'full_attention'
  if (architecture.attention === 'delta-hybrid')
    return (layer + 1) % (config.optionalSize('full_attention_interval') ?? 4) === 0
  const windows = architecture.windows
  if (windows === undefined || config.optionalSize(windows.tokens) === null) return true
  const every =
    typeof windows.fullEvery === 'number'
      ? windows.fullEvery
      : (config.optionalSize(windows.fullEvery) ?? 6)
  return every > 0 && (layer + 1) % every === 0
}

function hasExperts(config: ConfigReader, architecture: Architecture, layer: number): boolean {
  const keys = architecture.experts
  if (keys === undefined || (config.optionalSize(keys.count) ?? 0) === 0) return false
  if (keys.denseFirst !== undefined && layer < (config.optionalSize(keys.denseFirst) ?? 0))
    return false
  const step = keys.step === undefined ? 1 : (config.optionalSize(keys.step) ?? 1)
  return (layer + 1) % step === 0
}

/** Tokens per cache entry of a layer. */
function compressionOf(config: ConfigReader, layer: number): number {
  const ratios = config.numbers('compress_ratios')
  const ratio = ratios?.[layer]
  if (ratio === undefined)
    throw new ConfigGap(`"compress_ratios" says nothing about layer ${layer}`)
  return ratio
}

function attentionBlock(
  config: ConfigReader,
  architecture: Architecture,
  options: { readonly hidden: number; readonly full: boolean; readonly ratio: number },
): AttentionBlock {
  switch (architecture.attention) {
    case 'latent':
      return latentAttention(config, architecture, options.hidden)
    case 'compressed':
      return compressedAttention(config, options)
    case 'delta-hybrid':
      return options.full
        ? groupedAttention(config, architecture, options)
        : deltaAttention(config, options.hidden)
    case 'grouped':
      return groupedAttention(config, architecture, options)
    default:
      return assertNever(architecture.attention)
  }
}

function layerKind(
  config: ConfigReader,
  architecture: Architecture,
  options: {
    readonly hidden: number
    readonly full: boolean
    readonly withExperts: boolean
    readonly ratio: number
  },
): LayerKind {
  const { hidden, withExperts } = options
  const attention = attentionBlock(config, architecture, options)
  const matrices = architecture.feedForwardMatrices
  const block = (width: number): number => matrices * hidden * width
  const norms = 2 * hidden
  if (!withExperts) {
    const denseKey = architecture.experts?.denseWidth
    const width =
      (denseKey === undefined ? null : config.optionalSize(denseKey)) ??
      config.size('intermediate_size')
    return {
      attention: attention.shape,
      attentionParameters: attention.parameters,
      replicatedParameters: attention.replicated + norms,
      denseParameters: block(width),
      experts: null,
      feedForwardWidth: width,
    }
  }
  const keys = architecture.experts
  if (keys === undefined) throw new ConfigGap('experts are asked for where none are described')
  const width = config.size(keys.width)
  const experts: ExpertShape = {
    count: config.size(keys.count),
    active: config.size(keys.active),
    parametersEach: block(width),
  }
  if (experts.active > experts.count)
    throw new ConfigGap(
      `${keys.active} (${experts.active}) is more than ${keys.count} (${experts.count})`,
    )
  const sharedCount =
    keys.sharedCount === undefined ? 0 : (config.optionalSize(keys.sharedCount) ?? 0)
  const sharedWidth =
    keys.sharedWidth === undefined ? 0 : (config.optionalSize(keys.sharedWidth) ?? 0)
  const shared = block(sharedCount * width + sharedWidth + (keys.sharedAlways === true ? width : 0))
  const beside = keys.denseBeside === true ? block(config.size('intermediate_size')) : 0
  return {
    attention: attention.shape,
    attentionParameters: attention.parameters,
    replicatedParameters: attention.replicated + norms + hidden * experts.count,
    denseParameters: shared + beside,
    experts,
    feedForwardWidth: width,
  }
}

/** Bits as stored on disk: MLX writes its own quantisation into config.json. */
function formatOf(
  config: Readonly<Record<string, unknown>>,
  text: Readonly<Record<string, unknown>>,
): WeightFormat {
  const found = config['quantization'] ?? text['quantization']
  const plain: WeightFormat = { name: 'bf16', bitsPerWeight: 16, otherBitsPerWeight: null }
  if (typeof found !== 'object' || found === null) {
    const type = text['torch_dtype'] ?? text['dtype'] ?? config['torch_dtype']
    return type === 'float32' ? { name: 'f32', bitsPerWeight: 32, otherBitsPerWeight: null } : plain
  }
  const bits = (found as Record<string, unknown>)['bits']
  const group = (found as Record<string, unknown>)['group_size']
  const mode = (found as Record<string, unknown>)['mode']
  if (typeof bits !== 'number' || typeof group !== 'number' || bits <= 0 || group <= 0) return plain
  // Affine groups carry a scale and a bias of 16 bits each; the block formats one scale of 8.
  const extra = mode === undefined || mode === 'affine' ? 32 / group : 8 / group
  return {
    name: typeof mode === 'string' && mode !== 'affine' ? mode : `q${bits}`,
    bitsPerWeight: bits + extra,
    otherBitsPerWeight: null,
  }
}
