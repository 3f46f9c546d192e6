// How a model can be shared out among ranks: its heads and experts from its config, and what mlx-lm's file
// for its architecture carries (data/architectures.json).
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { ModelCut } from '../core/cluster/group-plan.ts'

const tableSchema = z.object({
  architectures: z.array(
    z.looseObject({
      modelTypes: z.array(z.string()),
      strategies: z.object({
        pipeline: z.boolean(),
        tensor: z.boolean(),
        unevenTensor: z.boolean(),
        expert: z.boolean(),
      }),
    }),
  ),
})

type Strategies = z.infer<typeof tableSchema>['architectures'][number]['strategies']

let strategiesByType: Map<string, Strategies> | null = null

function strategiesOf(architecture: string): Strategies | undefined {
  if (strategiesByType === null) {
    const file = new URL('../../data/architectures.json', import.meta.url)
    const { architectures } = tableSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
    strategiesByType = new Map(
      architectures.flatMap(({ modelTypes, strategies }) =>
        modelTypes.map((type) => [type, strategies] as const),
      ),
    )
  }
  return strategiesByType.get(architecture)
}

/** Models that read a text whole and give its vector; the worker has them itself, and holds them whole. */
export function isEncoder(architecture: string): boolean {
  return encoders.has(architecture)
}

const encoders: ReadonlySet<string> = new Set([
  'bert',
  'roberta',
  'xlm-roberta',
  'camembert',
  'distilbert',
])

/** What of config.json speaks of heads and experts; names differ between families. */
export interface CutConfig {
  readonly [key: string]: unknown
}

const expertKeys = ['num_experts', 'num_local_experts', 'n_routed_experts', 'moe_num_experts']

export function modelCut(about: {
  architecture: string
  config: CutConfig
  edgeFraction: number
  tied: boolean
}): ModelCut {
  const { architecture, config, edgeFraction, tied } = about
  const number = (keys: readonly string[]): number | undefined =>
    keys.map((key) => config[key]).find((value): value is number => typeof value === 'number')
  const heads = number(['num_attention_heads', 'n_head']) ?? 1
  const experts = number(expertKeys) ?? 0
  const known = strategiesOf(architecture)
  return {
    // What the table does not know yet the worker tries, and refuses by name when it cannot.
    pipeline: isEncoder(architecture) ? false : (known?.pipeline ?? true),
    tensor: known?.unevenTensor === true ? 'uneven' : known?.tensor === true ? 'even' : 'no',
    expert: experts > 0 && (known?.expert ?? true),
    heads,
    kvHeads: number(['num_key_value_heads']) ?? heads,
    experts,
    edgeFraction,
    tied,
  }
}
