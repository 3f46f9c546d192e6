// What a model asks of a machine: bytes to keep, bytes to read and arithmetic to do, per layer and
// for a chosen quantisation. The cost model sees this alone.
import { assert, assertNever } from '../../assert.ts'
import { type LayerKind, type ModelShape, attentionKvElements } from './shape.ts'

/** How weights are stored. Bits count scales too: four-bit groups of 64 take 4.5. */
export interface WeightFormat {
  readonly name: string
  readonly bitsPerWeight: number
  /** Bits of what is usually left alone when only experts are quantised; null: the same. */
  readonly otherBitsPerWeight: number | null
}

export type PrefillClass = 'dense' | 'experts' | 'latent'

export interface LayerWork {
  /** Weights every token reads, that a tensor split cuts, and those every rank reads whole. */
  readonly sharedBytes: number
  readonly replicatedBytes: number
  readonly expertBytes: number
  readonly expertsActive: number
  readonly expertsTotal: number
  readonly kvBytesPerToken: number
  /** KV heads that a tensor split can cut; 1 when every rank keeps all of it. */
  readonly kvWays: number
  /** Tokens kept, and tokens read, at most. */
  readonly kvTokensMax: number
  readonly attendTokensMax: number
  readonly fixedStateBytes: number
  /** Index keys read for every token of context, by layers that pick the tokens they attend to. */
  readonly indexBytesPerToken: number
  /** Attention arithmetic of one new token per token of context, and the units it runs on. */
  readonly scoreFlopsPerToken: number
  readonly scoreOnMatrixUnits: boolean
  /** Arithmetic of one token in the matrix products. */
  readonly flopsPerToken: number
  /** Prefill attention per pair of tokens, causal half already taken. */
  readonly pairFlops: number
  readonly kernels: number
  readonly prefillClass: PrefillClass
  /** Bytes of attention scores that prefill writes out per pair of tokens; fused kernels write none. */
  readonly scoreBytesPerPair: number
}

export interface ModelWork {
  readonly hidden: number
  readonly contextTokensMax: number
  readonly layers: readonly LayerWork[]
  readonly embeddingBytes: number
  /** Stored on the last stage; with a tied embedding it is the embedding again. */
  readonly headBytes: number
  readonly headFlops: number
  readonly tiedEmbedding: boolean
  readonly vocabulary: number
}

const cacheBytesPerElement = 2
const stateBytesPerElement = 4

/** Dependent kernels of one decode step, counted in mlx-lm's layers. */
const kernelCounts = {
  grouped: 12,
  latent: 32,
  recurrent: 18,
  dense: 6,
  experts: 15,
  latentExperts: 22,
} as const

export function kernelsOf(
  attention: 'grouped' | 'latent' | 'recurrent',
  hasExperts: boolean,
): number {
  if (!hasExperts) return kernelCounts[attention] + kernelCounts.dense
  return (
    kernelCounts[attention] +
    (attention === 'latent' ? kernelCounts.latentExperts : kernelCounts.experts)
  )
}

function layerWork(kind: LayerKind, format: WeightFormat): LayerWork {
  const expertBits = format.bitsPerWeight
  const otherBits = format.otherBitsPerWeight ?? format.bitsPerWeight
  const experts = kind.experts
  const denseBits = experts === null ? expertBits : otherBits
  const bytes = (parameters: number, bits: number): number => (parameters * bits) / 8
  const attention = kind.attention
  const common = {
    sharedBytes:
      bytes(kind.attentionParameters, otherBits) + bytes(kind.denseParameters, denseBits),
    replicatedBytes: bytes(kind.replicatedParameters, otherBits),
    expertBytes: experts === null ? 0 : bytes(experts.parametersEach, expertBits),
    expertsActive: experts?.active ?? 0,
    expertsTotal: experts?.count ?? 0,
    kvBytesPerToken: attentionKvElements(attention) * cacheBytesPerElement,
    flopsPerToken:
      2 *
      (kind.attentionParameters +
        kind.replicatedParameters +
        kind.denseParameters +
        (experts === null ? 0 : experts.active * experts.parametersEach)),
    kernels: kernelsOf(attention.kind, experts !== null),
  }
  switch (attention.kind) {
    case 'grouped': {
      const width = attention.queryHeads * (attention.headDim + attention.valueDim)
      return {
        ...common,
        kvWays: attention.kvHeads,
        kvTokensMax: attention.windowTokens ?? Infinity,
        attendTokensMax: attention.windowTokens ?? Infinity,
        fixedStateBytes: 0,
        indexBytesPerToken: 0,
        scoreFlopsPerToken: 2 * width,
        scoreOnMatrixUnits: false,
        pairFlops: width,
        scoreBytesPerPair: 0,
        prefillClass: experts === null ? 'dense' : 'experts',
      }
    }
    case 'latent': {
      const width = 2 * attention.latentDim + attention.ropeDim
      return {
        ...common,
        kvWays: 1,
        kvTokensMax: Infinity,
        attendTokensMax: attention.sparseTokens ?? Infinity,
        fixedStateBytes: 0,
        indexBytesPerToken: (attention.indexDim * cacheBytesPerElement) / attention.tokensPerEntry,
        scoreFlopsPerToken: (2 * attention.queryHeads * width) / attention.tokensPerEntry,
        scoreOnMatrixUnits: true,
        pairFlops: 2 * attention.queryHeads * attention.valueDim,
        // mlx-lm adds the rotary part of the scores as a mask: one array per head.
        scoreBytesPerPair: attention.queryHeads * cacheBytesPerElement,
        prefillClass: 'latent',
      }
    }
    case 'recurrent':
      return {
        ...common,
        kvWays: attention.heads,
        kvTokensMax: 0,
        attendTokensMax: 0,
        fixedStateBytes: attention.stateElements * stateBytesPerElement,
        indexBytesPerToken: 0,
        scoreFlopsPerToken: 0,
        scoreOnMatrixUnits: false,
        pairFlops: 0,
        scoreBytesPerPair: 0,
        prefillClass: experts === null ? 'dense' : 'experts',
      }
    default:
      return assertNever(attention)
  }
}

export function modelWork(shape: ModelShape, format: WeightFormat): ModelWork {
  const perKind = shape.kinds.map((kind) => layerWork(kind, format))
  const layers = shape.layers.map((index) => {
    const work = perKind[index]
    assert(work !== undefined, 'every layer names a kind that exists')
    return work
  })
  const bits = format.otherBitsPerWeight ?? format.bitsPerWeight
  const embeddingBytes = (shape.vocabulary * shape.hidden * bits) / 8
  return {
    hidden: shape.hidden,
    contextTokensMax: shape.contextTokensMax,
    layers,
    embeddingBytes,
    headBytes: embeddingBytes,
    headFlops: 2 * shape.vocabulary * shape.hidden,
    tiedEmbedding: shape.tiedEmbedding,
    vocabulary: shape.vocabulary,
  }
}

/** Bytes of all weights as stored. */
export function storedBytes(work: ModelWork): number {
  let bytes = work.embeddingBytes + (work.tiedEmbedding ? 0 : work.headBytes)
  for (const layer of work.layers) bytes += layerStoredBytes(layer)
  return bytes
}

export function layerStoredBytes(layer: LayerWork): number {
  return layer.sharedBytes + layer.replicatedBytes + layer.expertsTotal * layer.expertBytes
}
