// How an architecture's config.json is to be read, and what can be done with it. These are facts
// about mlx-lm's model files, kept as data (data/architectures.json); no code asks for a name.

/** Names of config keys; a model's file says which it uses. */
export interface ExpertKeys {
  readonly count: string
  readonly active: string
  readonly width: string
  /** Number of experts every token visits, or the width of one such expert. */
  readonly sharedCount?: string | undefined
  readonly sharedWidth?: string | undefined
  /** A shared expert as wide as a routed one, always there. */
  readonly sharedAlways?: boolean | undefined
  /** Layers at the start without experts. */
  readonly denseFirst?: string | undefined
  /** Every n-th layer has experts. */
  readonly step?: string | undefined
  /** Width of layers without experts, when it is not the plain one. */
  readonly denseWidth?: string | undefined
  /** A dense block beside the experts of the same layer. */
  readonly denseBeside?: boolean | undefined
}

export interface WindowKeys {
  readonly tokens: string
  /** Every n-th layer attends to everything: a number, or the key that holds it. */
  readonly fullEvery: number | string
}

export interface Architecture {
  /** mlx-lm's file for it; null when mlx-lm has none yet. */
  readonly mlxFile: string | null
  /** `model_type` values that lead here. */
  readonly modelTypes: readonly string[]
  readonly attention: 'grouped' | 'latent' | 'delta-hybrid' | 'compressed'
  /** Matrices of the feed-forward block: three when gated. */
  readonly feedForwardMatrices: number
  readonly experts?: ExpertKeys | undefined
  readonly windows?: WindowKeys | undefined
  /** Whether a missing `tie_word_embeddings` means tied. */
  readonly tiedByDefault: boolean
  /** The query projection also makes a gate as wide as itself. */
  readonly queryGate?: boolean | undefined
  /** Full-attention layers with their own head size, KV heads and shared keys and values. */
  readonly fullLayers?:
    | { readonly headDim: string; readonly kvHeads: string; readonly sharedKeyValue: string }
    | undefined
  /** An indexer picks the tokens that latent attention reads. */
  readonly indexer?: boolean | undefined
  readonly strategies: {
    readonly pipeline: boolean
    readonly tensor: boolean
    readonly unevenTensor: boolean
    readonly expert: boolean
  }
  /** Whether rows of different requests may share a batch. */
  readonly batching: 'merged' | 'alone'
  readonly note?: string | undefined
}
