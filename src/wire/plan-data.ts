// Schemas of the planner's data files: chips, links, architectures, worker abilities, the catalogue.
// Checked once when they are read; the planner then works on plain figures.
import { z } from 'zod'

const positive = z.number().positive()
const sources = z.array(z.string().min(1)).min(1)

export const chipFile = z.object({
  note: z.string(),
  chips: z.array(
    z.strictObject({
      key: z.string().regex(/^[A-Za-z0-9]+$/),
      name: z.string().min(1),
      kind: z.enum(['apple', 'cuda']),
      /** Short codes used in tables of measurements. */
      codes: z.array(z.string()),
      aliases: z.array(z.string()),
      memoryBandwidthGBs: positive,
      gpuCores: positive.nullable(),
      gpuClockMHz: positive,
      vectorTflops: positive,
      matrixTflops: positive,
      memoryOptionsGiB: z.array(positive).min(1),
      memoryShareUsable: positive.max(1),
      thunderbolt: z.number().nullable(),
      rdmaPorts: z.number().int().nonnegative(),
      wattsIdle: positive,
      wattsLoad: positive,
      launchPriceUsd: positive,
      sources,
    }),
  ),
})
export type ChipFile = z.infer<typeof chipFile>

export const linkFile = z.object({
  note: z.string(),
  links: z.array(
    z.strictObject({
      key: z.string().min(1),
      class: z.enum(['rdma', 'thunderbolt-ip', 'ethernet', 'wifi']),
      bytesPerSecond: positive,
      typicalLatencySeconds: positive,
      nominalGbps: z.number().positive().optional(),
      extraLatencySeconds: z.number().nonnegative(),
      sources,
    }),
  ),
})

const expertKeys = z.strictObject({
  count: z.string(),
  active: z.string(),
  width: z.string(),
  sharedCount: z.string().optional(),
  sharedWidth: z.string().optional(),
  sharedAlways: z.boolean().optional(),
  denseFirst: z.string().optional(),
  step: z.string().optional(),
  denseWidth: z.string().optional(),
  denseBeside: z.boolean().optional(),
})

export const architectureFile = z.object({
  note: z.string(),
  architectures: z.array(
    z.strictObject({
      mlxFile: z.string().nullable(),
      modelTypes: z.array(z.string().min(1)).min(1),
      attention: z.enum(['grouped', 'latent', 'delta-hybrid', 'compressed']),
      feedForwardMatrices: z.number().int().min(2).max(3),
      experts: expertKeys.optional(),
      windows: z
        .strictObject({ tokens: z.string(), fullEvery: z.union([z.number().int(), z.string()]) })
        .optional(),
      tiedByDefault: z.boolean(),
      queryGate: z.boolean().optional(),
      fullLayers: z
        .strictObject({ headDim: z.string(), kvHeads: z.string(), sharedKeyValue: z.string() })
        .optional(),
      indexer: z.boolean().optional(),
      strategies: z.strictObject({
        pipeline: z.boolean(),
        tensor: z.boolean(),
        unevenTensor: z.boolean(),
        expert: z.boolean(),
      }),
      batching: z.enum(['merged', 'alone']),
      note: z.string().optional(),
    }),
  ),
})

export const abilityFile = z.object({
  note: z.string(),
  abilities: z.strictObject({
    pipeline: z.boolean(),
    tensor: z.boolean(),
    unevenTensor: z.boolean(),
    tensorPipeline: z.boolean(),
    expert: z.boolean(),
    replicas: z.boolean(),
  }),
})

export const catalogueFile = z.strictObject({
  models: z.array(
    z.strictObject({
      id: z.string().regex(/^[a-z0-9][a-z0-9.-]*$/),
      name: z.string().min(1),
      aliases: z.array(z.string()),
      licence: z.string().min(1),
      /** The keys of config.json that decide the shape. */
      config: z.looseObject({ model_type: z.string() }),
      published: z.strictObject({
        totalBillion: positive,
        activeBillion: positive.nullable(),
        source: z.string().min(1),
        /** Parameters that the published total counts and the language model does not have. */
        besidesBillion: positive.optional(),
        besides: z.string().optional(),
      }),
      formats: z
        .array(
          z.strictObject({
            name: z.string().min(1),
            bitsPerWeight: positive,
            otherBitsPerWeight: positive.optional(),
            repository: z.string().optional(),
          }),
        )
        .min(1),
      sources: z
        .array(
          z.strictObject({
            repository: z.string().min(1),
            file: z.string().min(1),
            version: z.string().min(1),
            gives: z.string().min(1),
          }),
        )
        .min(1),
      note: z.string().optional(),
    }),
  ),
})
export type CatalogueCard = z.infer<typeof catalogueFile>['models'][number]

const range = z.object({ value: z.number(), low: z.number(), high: z.number() })

/** One line of the file in which predictions and what came of them are kept. */
export const scoreRecord = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('prediction'),
    atMs: z.number(),
    group: z.string(),
    model: z.string(),
    strategy: z.string(),
    machines: z.number().int().positive(),
    restsOn: z.string(),
    tokensPerSecond: range,
    firstTokenSeconds: range,
  }),
  z.object({
    kind: z.literal('measurement'),
    atMs: z.number(),
    group: z.string(),
    tokensPerSecond: z.number().positive(),
    firstTokenSeconds: z.number().positive().nullable(),
    requests: z.number().int().positive(),
  }),
])

const probeVersions = z.object({ os: z.string(), mlx: z.string(), worker: z.string() })
const measuredFields = {
  spread: z.number().nonnegative(),
  versions: probeVersions,
  cables: z.string().nullable(),
  atMs: z.number(),
}

/** What "bushel probe" found on this cluster, as it is kept on disk. */
export const measurementFile = z.object({
  version: z.literal(1),
  machines: z.array(
    z.object({
      machine: z.string().min(1),
      value: z.object({
        memoryBytesPerSecond: z.number().positive(),
        kernelSeconds: z.number().positive(),
        matmulFlops: z.number().positive(),
      }),
      ...measuredFields,
    }),
  ),
  worlds: z.array(
    z.object({
      machines: z.array(z.string().min(1)).min(2),
      backend: z.enum(['ring', 'jaccl']),
      value: z.object({
        smallSeconds: z.number().positive(),
        mebibyteSeconds: z.number().positive(),
      }),
      ...measuredFields,
    }),
  ),
  hops: z.array(
    z.object({
      source: z.string().min(1),
      target: z.string().min(1),
      value: z.object({ hopSeconds: z.number().positive() }),
      ...measuredFields,
    }),
  ),
})

const positiveSeconds = z.array(z.number().positive()).min(1)

/** What a probing rank prints: raw timings, nothing worked out. */
export const machineTimings = z.object({
  versions: z.object({ mlx: z.string(), worker: z.string() }),
  decode: z
    .array(
      z.object({
        shape: z.string(),
        bytesRead: z.number().positive(),
        kernels: z.number().positive(),
        seconds: positiveSeconds,
      }),
    )
    .min(2),
  prefill: z.array(z.object({ flops: z.number().positive(), seconds: positiveSeconds })).min(1),
})

export const hopTimings = z.object({ seconds: positiveSeconds })
export const worldTimings = z.object({
  backend: z.enum(['ring', 'jaccl']),
  smallSeconds: positiveSeconds,
  mebibyteSeconds: positiveSeconds,
})
