// How tokens are drawn: what the client says, then what the model's makers recommend, then plain defaults.
import type { SamplingDefaults } from '../core/cluster/group-plan.ts'
import type { Sampling } from '../core/serving/request.ts'

type Wish = number | null | undefined

export interface SamplingWishes {
  readonly temperature?: Wish
  readonly topP?: Wish
  readonly topK?: Wish
  readonly minP?: Wish
  readonly repetitionPenalty?: Wish
  readonly presencePenalty?: Wish
  readonly frequencyPenalty?: Wish
  readonly logitBias?: Readonly<Record<string, number>> | null | undefined
  readonly seed?: Wish
}

const temperatureDefault = 0.7

export function samplingFor(
  wishes: SamplingWishes,
  from: { defaults: SamplingDefaults; seed: string },
): Sampling {
  const { defaults } = from
  return {
    temperature: wishes.temperature ?? defaults.temperature ?? temperatureDefault,
    topP: wishes.topP ?? defaults.topP ?? 1,
    topK: wishes.topK ?? defaults.topK ?? 0,
    minP: wishes.minP ?? 0,
    repetitionPenalty: wishes.repetitionPenalty ?? defaults.repetitionPenalty ?? 1,
    presencePenalty: wishes.presencePenalty ?? 0,
    frequencyPenalty: wishes.frequencyPenalty ?? 0,
    logitBias: Object.entries(wishes.logitBias ?? {}).map(([id, bias]) => [Number(id), bias]),
    // Negative seeds are as good as others; the worker counts in 64 bits without sign.
    seed: wishes.seed == null ? from.seed : BigInt.asUintN(64, BigInt(wishes.seed)).toString(),
  }
}

/** 56 fresh bits: enough that no two requests share them, few enough for a JSON number. */
export function freshSeed(randomHex: (bytes: number) => string): string {
  return BigInt(`0x${randomHex(7)}`).toString()
}
