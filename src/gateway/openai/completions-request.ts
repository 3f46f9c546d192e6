// The older completions request: plain prompts, as text or as token ids, one or many.
import { z } from 'zod'
import { limits } from '../../core/limits.ts'
import { deriveSeed } from '../../core/serving/derive-seed.ts'
import type { Prompt, Question } from '../../core/serving/request.ts'
import type { Ask } from '../answers/run.ts'
import { badField } from '../api-error.ts'
import type { QuestionSource } from '../question-source.ts'
import { samplingFor } from '../sampling.ts'
import { wellFormed } from '../well-formed.ts'
import { choicesField, modelField } from './chat-request.ts'
import { responseFormat, toGrammar } from './response-format.ts'
import {
  samplingFields,
  samplingWishes,
  stopField,
  stopStrings,
  tokensMax,
} from './sampling-fields.ts'

const ids = z.array(z.number().int().min(0).max(0xffff_ffff)).min(1, 'a prompt needs a token')
const many = `at most ${limits.promptsPerRequestMax} prompts at once`

export const completionRequest = z.looseObject({
  model: modelField,
  prompt: z.union(
    [
      z.string(),
      ids,
      z.array(z.string()).min(1).max(limits.promptsPerRequestMax, many),
      z.array(ids).min(1).max(limits.promptsPerRequestMax, many),
    ],
    { error: `must be a text, token ids, or a list of either; ${many}` },
  ),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokensMax,
  ...samplingFields,
  stop: stopField,
  logprobs: z.number().int().min(0).max(20).nullish(),
  n: choicesField,
  best_of: z.number().int().min(1).nullish(),
  echo: z.boolean().nullish(),
  suffix: z.string().nullish(),
  response_format: responseFormat.nullish(),
})

export type CompletionRequest = z.infer<typeof completionRequest>

/** What OpenAI gives to whoever asks for no length. */
const tokensDefault = 16

export interface CompletionAsk extends Ask {
  /** What is repeated before the answer. */
  readonly echo: string
}

export function completionAsks(
  request: CompletionRequest,
  from: QuestionSource,
): readonly CompletionAsk[] {
  refuseWhatIsNotThere(request)
  return promptsOf(request.prompt).flatMap((prompt, number) => {
    const question = toQuestion(request, prompt, from)
    const echo = request.echo === true && prompt.kind === 'text' ? prompt.text : ''
    return Array.from({ length: request.n ?? 1 }, (_, choice) => {
      const seed = deriveSeed(question.sampling.seed, choice)
      const sampling = { ...question.sampling, seed }
      return { prompt: number, question: { ...question, sampling }, echo }
    })
  })
}

function toQuestion(request: CompletionRequest, prompt: Prompt, from: QuestionSource): Question {
  return {
    prompt,
    sampling: samplingFor(samplingWishes(request), {
      defaults: from.model.defaults,
      seed: from.seed,
    }),
    tokensMax: request.max_tokens ?? tokensDefault,
    stop: stopStrings(request.stop),
    ignoreEos: false,
    logprobs: request.logprobs ?? null,
    grammar: toGrammar(request.response_format, 'response_format'),
    cacheScope: from.cacheScope,
  }
}

function promptsOf(prompt: CompletionRequest['prompt']): readonly Prompt[] {
  if (typeof prompt === 'string') return [{ kind: 'text', text: wellFormed(prompt, 'prompt') }]
  if (typeof prompt[0] === 'number') return [{ kind: 'ids', ids: prompt as number[] }]
  return (prompt as (string | number[])[]).map((one, index): Prompt => {
    if (typeof one === 'string') return { kind: 'text', text: wellFormed(one, `prompt.${index}`) }
    return { kind: 'ids', ids: one }
  })
}

function refuseWhatIsNotThere(request: CompletionRequest): void {
  if (request.suffix != null && request.suffix !== '') {
    const message = 'Filling in before a suffix is not supported; send the text before it as prompt'
    throw badField('suffix', message, 'unsupported')
  }
  if (request.best_of != null && request.best_of !== (request.n ?? 1))
    throw badField('best_of', 'best_of is not supported; ask for n choices', 'unsupported')
  if (request.echo !== true) return
  if (request.logprobs != null) {
    const message = 'echo together with logprobs would need those of the prompt, which are not kept'
    throw badField('logprobs', message, 'unsupported')
  }
  if (promptsOf(request.prompt).some((prompt) => prompt.kind === 'ids'))
    throw badField('echo', 'Prompts of token ids cannot be echoed; send text', 'unsupported')
}
