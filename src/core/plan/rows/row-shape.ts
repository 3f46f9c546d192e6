// Model shapes as a table gives them: totals instead of layers. Turned into even layers, with what
// the totals tell about heads and caches read out of them.
import { kernelsOf } from '../model/work.ts'
import type { LayerWork, ModelWork } from '../model/work.ts'
import { type CsvRow, readCsv } from './csv.ts'

export type RowModelKind = 'dense' | 'moe' | 'mla'

export interface RowShape {
  readonly model: string
  readonly layers: number
  readonly hidden: number
  readonly quantisedParameters: number
  readonly sixteenBitParameters: number
  readonly kvBytesPerToken: number
  readonly kind: RowModelKind
  readonly attentionWidth: number
}

export const shapeColumns: readonly string[] = [
  'model',
  'layers',
  'hidden',
  'active_quantised_params_billion',
  'active_16bit_params_billion',
  'kv_bytes_per_token_fp16',
  'kind',
  'attention_width',
]

export type ShapesOutcome =
  | { readonly kind: 'read'; readonly shapes: ReadonlyMap<string, RowShape> }
  | { readonly kind: 'unreadable'; readonly message: string }

/** Sizes beyond these are typing errors, not models. */
const bounds: Readonly<Record<string, readonly [number, number]>> = {
  layers: [1, 2000],
  hidden: [16, 200_000],
  active_quantised_params_billion: [0, 20_000],
  active_16bit_params_billion: [0, 20_000],
  kv_bytes_per_token_fp16: [0, 50_000_000],
  attention_width: [0, 2_000_000],
}

/** What an empty cell usually means; other columns have no usual value. */
function unsaid(column: string, row: CsvRow): string {
  if (column === 'active_16bit_params_billion') return '0'
  return column === 'attention_width' ? row.get('hidden') : ''
}

export function readShapes(text: string, name: string): ShapesOutcome {
  const csv = readCsv(text, { name, wanted: shapeColumns })
  if (csv.kind === 'unreadable') return csv
  const shapes = new Map<string, RowShape>()
  for (const row of csv.rows) {
    const where = `${name} line ${row.line}`
    const numbers: Record<string, number> = {}
    for (const [column, [low, high]] of Object.entries(bounds)) {
      const given = row.get(column) === '' ? unsaid(column, row) : row.get(column)
      const value = given === '' ? NaN : Number(given)
      if (!(value >= low && value <= high))
        return {
          kind: 'unreadable',
          message: `${where}: ${column} is "${row.get(column)}"; a number from ${low} to ${high} is needed`,
        }
      numbers[column] = value
    }
    const number = (column: string): number => numbers[column] ?? 0
    const kind = row.get('kind')
    if (kind !== 'dense' && kind !== 'moe' && kind !== 'mla')
      return {
        kind: 'unreadable',
        message: `${where}: kind is "${kind}"; it must be dense, moe or mla`,
      }
    const model = row.get('model')
    if (model === '') return { kind: 'unreadable', message: `${where}: the model has no name` }
    if (shapes.has(model))
      return { kind: 'unreadable', message: `${where}: "${model}" is there twice` }
    if (!Number.isInteger(number('layers')))
      return {
        kind: 'unreadable',
        message: `${where}: layers is ${number('layers')}; it must be whole`,
      }
    const quantised = number('active_quantised_params_billion') * 1e9
    const sixteen = number('active_16bit_params_billion') * 1e9
    if (quantised + sixteen <= 0)
      return { kind: 'unreadable', message: `${where}: "${model}" has no parameters at all` }
    shapes.set(model, {
      model,
      layers: number('layers'),
      hidden: number('hidden'),
      quantisedParameters: quantised,
      sixteenBitParameters: sixteen,
      kvBytesPerToken: number('kv_bytes_per_token_fp16'),
      kind,
      attentionWidth: number('attention_width'),
    })
  }
  return { kind: 'read', shapes }
}

/** No model in use has more query heads per KV head; a higher ratio means that few layers attend. */
const queryHeadsPerKvHeadMax = 16
const queryHeadsPerKvHeadTypical = 8
const latentHeadDim = 128
const latentRopeDim = 64
/** Of the parameters that a token visits in a mixture, those in routed experts, usually eight. */
const routedShare = 0.7
const expertsActive = 8

/** Query heads per KV head, read out of the totals. */
function queryHeadsPerKvHead(shape: RowShape): number {
  const kvWidth = shape.kvBytesPerToken / 4 / shape.layers
  if (kvWidth === 0) return 0
  const ratio = shape.attentionWidth / kvWidth
  if (ratio > queryHeadsPerKvHeadMax) return queryHeadsPerKvHeadTypical
  return Math.max(1, ratio)
}

/** Even layers with the totals of the table. Experts are already counted as active parameters. */
export function rowWork(shape: RowShape, bitsPerWeight: number): ModelWork {
  const { layers } = shape
  const bytes = (shape.quantisedParameters * bitsPerWeight) / 8 + shape.sixteenBitParameters * 2
  const kvBytes = shape.kvBytesPerToken / layers
  const latent = shape.kind === 'mla'
  const latentWidth = kvBytes / 2
  const kvWidth = kvBytes / 4
  // Where few layers attend, the width of those layers is spread over all of them.
  const queryWidth = latent ? shape.attentionWidth : kvWidth * queryHeadsPerKvHead(shape)
  const scoreFlops = latent
    ? 2 * (queryWidth / latentHeadDim) * (2 * latentWidth - latentRopeDim)
    : 4 * queryWidth
  const routed = shape.kind === 'dense' ? 0 : routedShare
  const layer: LayerWork = {
    sharedBytes: (bytes * (1 - routed)) / layers,
    replicatedBytes: 0,
    // The table does not say how many experts lie idle; those that work are all that is read.
    expertBytes: (bytes * routed) / layers / expertsActive,
    expertsActive: routed === 0 ? 0 : expertsActive,
    expertsTotal: routed === 0 ? 0 : expertsActive,
    kvBytesPerToken: kvBytes,
    kvWays: latent ? 1 : 2,
    kvTokensMax: Infinity,
    attendTokensMax: Infinity,
    fixedStateBytes: 0,
    indexBytesPerToken: 0,
    scoreFlopsPerToken: scoreFlops,
    scoreOnMatrixUnits: latent,
    flopsPerToken: (2 * (shape.quantisedParameters + shape.sixteenBitParameters)) / layers,
    pairFlops: 2 * queryWidth,
    kernels: kernelsOf(latent ? 'latent' : 'grouped', shape.kind !== 'dense'),
    scoreBytesPerPair: 0,
    prefillClass: shape.kind === 'dense' ? 'dense' : latent ? 'latent' : 'experts',
  }
  return {
    hidden: shape.hidden,
    contextTokensMax: Infinity,
    layers: Array.from({ length: layers }, () => layer),
    embeddingBytes: 0,
    headBytes: 0,
    headFlops: 0,
    tiedEmbedding: true,
    vocabulary: 0,
  }
}
