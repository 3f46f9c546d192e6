// Fields that say how tokens are drawn, as OpenAI's requests spell them.
import { z } from 'zod'
import type { SamplingWishes } from '../sampling.ts'

export const tokensMax = z
  .number({ error: 'must be a whole number of tokens' })
  .int('must be a whole number of tokens')
  .min(1, 'must be at least 1')
  .max(2 ** 31 - 1, 'is larger than any context')
  .nullish()

const share = 'must be above 0 and at most 1'

export const samplingFields = {
  temperature: z.number().min(0).max(5).nullish(),
  top_p: z.number().gt(0, share).max(1, share).nullish(),
  top_k: z.number().int().min(-1).max(1_000_000).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().gt(0).max(10).nullish(),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/, 'keys are token ids'), z.number().min(-100).max(100))
    .nullish(),
  seed: z.number().int('must be a whole number below 2^53').nullish(),
}

export const stopField = z
  .union([z.string(), z.array(z.string()).max(16, 'at most 16 stop strings')])
  .nullish()

const wishFields = z.object(samplingFields)

export function samplingWishes(request: z.infer<typeof wishFields>): SamplingWishes {
  return {
    temperature: request.temperature,
    topP: request.top_p,
    // vLLM's way of saying "all of them".
    topK: request.top_k === -1 ? 0 : request.top_k,
    minP: request.min_p,
    repetitionPenalty: request.repetition_penalty,
    presencePenalty: request.presence_penalty,
    frequencyPenalty: request.frequency_penalty,
    logitBias: request.logit_bias,
    seed: request.seed,
  }
}

/** An empty stop string would stop everything; clients that send one mean none. */
export function stopStrings(stop: z.infer<typeof stopField>): readonly string[] {
  const all = typeof stop === 'string' ? [stop] : (stop ?? [])
  return all.filter((text) => text !== '')
}
