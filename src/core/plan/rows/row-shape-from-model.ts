// The totals of a model as a shape table would give them, for rows about a model that the table at hand
// does not list but the catalogue does.
import {
  type ModelShape,
  countParameters,
  kvElementsPerToken,
  layerParameters,
} from '../model/shape.ts'
import type { WeightFormat } from '../model/work.ts'
import type { RowShape } from './row-shape.ts'

export function rowShapeFromModel(name: string, shape: ModelShape, format: WeightFormat): RowShape {
  const count = countParameters(shape)
  // What a token reads: everything it visits, the table of the head included, the embedding not.
  const read = count.active - (shape.tiedEmbedding ? 0 : count.embedding)
  let routed = 0
  let index = 0
  let attentionWidth = 0
  for (const layer of shape.layers) {
    const kind = shape.kinds[layer]
    if (kind === undefined) continue
    if (kind.experts !== null) routed += kind.experts.active * kind.experts.parametersEach
    else if (format.otherBitsPerWeight !== null) routed += layerParameters(kind).active
    const { attention } = kind
    if (attention.kind === 'latent') {
      index += attention.indexDim / attention.tokensPerEntry
      attentionWidth = Math.max(attentionWidth, attention.queryHeads * attention.valueDim)
    } else if (attention.kind === 'grouped')
      attentionWidth = Math.max(attentionWidth, attention.queryHeads * attention.headDim)
  }
  const sixteenBit = format.otherBitsPerWeight === null ? 0 : Math.max(0, read - routed)
  const latent = shape.kinds.some((kind) => kind.attention.kind === 'latent')
  const experts = shape.kinds.some((kind) => kind.experts !== null)
  return {
    model: name,
    layers: shape.layers.length,
    hidden: shape.hidden,
    quantisedParameters: read - sixteenBit,
    sixteenBitParameters: sixteenBit,
    kvBytesPerToken: (kvElementsPerToken(shape) - index) * 2,
    kind: latent ? 'mla' : experts ? 'moe' : 'dense',
    attentionWidth,
  }
}
