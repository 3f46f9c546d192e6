// What a model folder holds: enough to place, name and trust it, without loading a weight.
import { lstat, readFile, readdir, realpath, stat } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { z } from 'zod'
import type { ModelCut, SamplingDefaults } from '../core/cluster/group-plan.ts'
import { isEncoder, modelCut } from './model-cut.ts'
import { ModelFileError, type TensorEntry, readSafetensorsHeader } from './safetensors-header.ts'

export interface ModelFacts {
  readonly architecture: string
  readonly layers: number
  readonly contextTokens: number
  readonly kvBytesPerToken: number
  readonly parameters: number
  readonly weightsBytes: number
  readonly defaults: SamplingDefaults
  /** It was trained to turn text into vectors, and says so as sentence-transformers does. */
  readonly embeds?: boolean
  readonly cut: ModelCut
  readonly files: readonly string[]
}

const count = z.number().int().min(1).max(1e9)

/** The few fields that placement needs; everything else is the worker's business. */
const textConfig = z.looseObject({
  model_type: z.string().optional(),
  num_hidden_layers: count.optional(),
  n_layer: count.optional(),
  n_layers: count.optional(),
  hidden_size: count.optional(),
  dim: count.optional(),
  n_embd: count.optional(),
  num_attention_heads: count.optional(),
  n_head: count.optional(),
  n_heads: count.optional(),
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  kv_lora_rank: count.nullish(),
  qk_rope_head_dim: count.nullish(),
  max_position_embeddings: count.nullish(),
  n_positions: count.nullish(),
})

const modelConfig = textConfig.extend({
  text_config: textConfig.optional(),
  model_file: z.unknown().optional(),
  quantization: z.looseObject({ bits: z.number().optional() }).nullish(),
})

const layersMax = 10_000
const contextDefault = 4096
const bytesPerCacheValue = 2

export async function inspectFolder(folder: string): Promise<ModelFacts> {
  const config = await readConfig(folder)
  const text = { ...config, ...config.text_config }
  const layers = text.num_hidden_layers ?? text.n_layer ?? text.n_layers
  const architecture = config.model_type ?? text.model_type
  if (architecture === undefined || layers === undefined) {
    throw new ModelFileError(
      `${folder} is no model folder: config.json names no model_type or layer count`,
    )
  }
  if (layers > layersMax) {
    throw new ModelFileError(`${folder}: config.json claims ${layers} layers, which no model has`)
  }
  const weights = await weightFiles(folder)
  let parameters = 0
  let weightsBytes = 0
  let edges = 0
  for (const file of weights) {
    const { tensors } = await readSafetensorsHeader(join(folder, file))
    for (const tensor of tensors) {
      weightsBytes += tensor.end - tensor.start
      const count = parametersIn(tensor, config.quantization?.bits)
      parameters += count
      if (!/\.(layers|layer|h|blocks)\.\d+\./.test(tensor.name)) edges += count
    }
  }
  return {
    architecture,
    layers,
    contextTokens: text.max_position_embeddings ?? text.n_positions ?? contextDefault,
    kvBytesPerToken: kvBytesPerToken(text, layers),
    parameters,
    weightsBytes,
    defaults: await samplingDefaults(folder),
    ...(isEncoder(architecture) || (await isEmbedder(folder)) ? { embeds: true } : {}),
    cut: modelCut({
      architecture,
      config: text,
      edgeFraction: parameters > 0 ? edges / parameters : 0,
      tied: text['tie_word_embeddings'] !== false,
    }),
    files: [...(await sideFiles(folder)), ...weights],
  }
}

async function readConfig(folder: string): Promise<z.infer<typeof modelConfig>> {
  let text: string
  try {
    text = await readFile(join(folder, 'config.json'), 'utf8')
  } catch {
    throw new ModelFileError(`${folder} is no model folder: it has no config.json`)
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new ModelFileError(`${folder}: config.json is not JSON`)
  }
  const parsed = modelConfig.safeParse(json)
  if (!parsed.success) {
    throw new ModelFileError(
      `${folder}: config.json is not usable: ${z.prettifyError(parsed.error)}`,
    )
  }
  if (parsed.data.model_file !== undefined) {
    throw new ModelFileError(
      `${folder} wants to run its own Python code (model_file); Bushel never does that`,
    )
  }
  return parsed.data
}

const moduleList = z.array(z.looseObject({ type: z.string() }))

async function isEmbedder(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, 'modules.json'), 'utf8').catch(() => '[]')
  try {
    const modules = moduleList.safeParse(JSON.parse(text))
    return modules.success && modules.data.some(({ type }) => type.endsWith('.Pooling'))
  } catch {
    return false
  }
}

const generationConfig = z.looseObject({
  do_sample: z.boolean().nullish(),
  temperature: z.number().min(0).max(5).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.number().int().min(0).nullish(),
  repetition_penalty: z.number().gt(0).nullish(),
})

/** The makers' own recommendation; a missing or odd file recommends nothing. */
async function samplingDefaults(folder: string): Promise<SamplingDefaults> {
  const text = await readFile(join(folder, 'generation_config.json'), 'utf8').catch(() => '{}')
  let json: unknown = {}
  try {
    json = JSON.parse(text)
  } catch {
    return {}
  }
  const parsed = generationConfig.safeParse(json)
  if (!parsed.success) return {}
  const { do_sample, temperature, top_p, top_k, repetition_penalty } = parsed.data
  return {
    ...(do_sample === false ? { temperature: 0 } : temperature == null ? {} : { temperature }),
    ...(top_p == null ? {} : { topP: top_p }),
    ...(top_k == null ? {} : { topK: top_k }),
    ...(repetition_penalty == null ? {} : { repetitionPenalty: repetition_penalty }),
  }
}

/** Weight files, by the index where there is one; names that leave the folder are refused. */
async function weightFiles(folder: string): Promise<readonly string[]> {
  const present = (await readdir(folder)).filter((name) => name.endsWith('.safetensors')).sort()
  for (const name of present) await refuseOutside(folder, name)
  const indexed = await indexedFiles(folder)
  for (const name of indexed) {
    if (basename(name) !== name)
      throw new ModelFileError(`${folder}: its index names "${name}", outside the folder`)
    if (!present.includes(name))
      throw new ModelFileError(`${folder} is incomplete: ${name} is missing; download it again`)
  }
  const files = indexed.length > 0 ? indexed : present.filter((name) => name.startsWith('model'))
  if (files.length === 0) throw new ModelFileError(`${folder} has no weights (model*.safetensors)`)
  return files
}

async function indexedFiles(folder: string): Promise<readonly string[]> {
  const index = z.object({ weight_map: z.record(z.string(), z.string()) })
  let text: string
  try {
    text = await readFile(join(folder, 'model.safetensors.index.json'), 'utf8')
  } catch {
    return []
  }
  try {
    return [...new Set(Object.values(index.parse(JSON.parse(text)).weight_map))].sort()
  } catch {
    throw new ModelFileError(`${folder}: model.safetensors.index.json is broken; download it again`)
  }
}

/** Links are fine inside a hub cache (its blobs folder) but must not lead anywhere else. */
async function refuseOutside(folder: string, name: string): Promise<void> {
  const path = join(folder, name)
  if (!(await lstat(path)).isSymbolicLink()) return
  const target = await realpath(path)
  const home = await realpath(folder)
  const cacheRoot = home.split(`${sep}snapshots${sep}`)[0] ?? home
  if (!target.startsWith(home + sep) && !target.startsWith(cacheRoot + sep)) {
    throw new ModelFileError(`${path} is a link out of the model's folder; copy the file instead`)
  }
}

async function sideFiles(folder: string): Promise<readonly string[]> {
  const wanted =
    /^(config|generation_config|tokenizer|tokenizer_config|modules|sentence_bert_config|special_tokens_map|added_tokens|vocab|chat_template)(\.json|\.jinja)?$|^merges\.txt$|\.tiktoken$|^tokenizer\.model$|^model\.safetensors\.index\.json$/
  const found = (await readdir(folder)).filter((name) => wanted.test(name)).sort()
  const pooling = '1_Pooling/config.json'
  const pools = (await stat(join(folder, pooling)).catch(() => null))?.isFile() === true
  if (!pools) return found
  await refuseOutside(folder, pooling)
  return [...found, pooling]
}

function parametersIn(tensor: TensorEntry, bits: number | undefined): number {
  const elements = tensor.shape.reduce((product, length) => product * length, 1)
  // MLX packs quantised weights into 32-bit words.
  return tensor.dtype === 'U32' && bits !== undefined
    ? Math.round((elements * 32) / bits)
    : elements
}

function kvBytesPerToken(config: z.infer<typeof textConfig>, layers: number): number {
  if (config.kv_lora_rank != null) {
    return layers * (config.kv_lora_rank + (config.qk_rope_head_dim ?? 64)) * bytesPerCacheValue
  }
  const heads = config.num_attention_heads ?? config.n_head ?? config.n_heads ?? 1
  const headDim =
    config.head_dim ??
    Math.floor((config.hidden_size ?? config.n_embd ?? config.dim ?? heads) / heads)
  return layers * 2 * (config.num_key_value_heads ?? heads) * headDim * bytesPerCacheValue
}
