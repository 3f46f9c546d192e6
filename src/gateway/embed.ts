// Vectors of texts, for the protocols that ask for them. Each text is a generation of its own: it is
// routed, waits, loads its model and moves to another machine like any other.
import type { ServerResponse } from 'node:http'
import type { ServedModel } from '../core/serving/catalogue.ts'
import type { Prompt, Question } from '../core/serving/request.ts'
import { AnswerRun } from './answers/run.ts'
import { badField, toApiError } from './api-error.ts'
import type { GatewayServing } from './context.ts'

export interface Embedded {
  readonly vectors: readonly Float32Array[]
  readonly promptTokens: number
}

export interface EmbedOrder {
  readonly serving: GatewayServing
  readonly name: string
  readonly inputs: readonly Prompt[]
  readonly cacheScope: string
  readonly response: ServerResponse
  readonly keepAliveMs?: number | null
  /** Of a text that is too long the beginning is embedded, instead of refusing it. */
  readonly cuts?: boolean
}

/** A chat model has hidden states too, but pooled they say little about meaning: no vectors beat misleading ones. */
export function refuseTalker({ model }: ServedModel): void {
  if (model.embeds === true) return
  const message = `${model.name} is not an embedding model; its vectors would mislead. Load one that is, such as a BERT or Qwen3-Embedding model`
  throw badField('model', message, 'unsupported')
}

/** Null when the reader hung up first. */
export function embed(order: EmbedOrder): Promise<Embedded | null> {
  const { inputs, cacheScope, response, cuts = false } = order
  return new Promise((resolve, reject) => {
    const vectors: Float32Array[] = []
    const asks = inputs.map((prompt, index) => ({
      prompt: index,
      question: embedQuestion(prompt, { cacheScope, cuts }),
    }))
    const run = new AnswerRun(
      { ...order, asks },
      {
        accepted: () => undefined,
        progressed: () => undefined,
        token: () => undefined,
        finished(index, { parts }) {
          const part = parts.find((one) => one.type === 'embedding')
          vectors[index] = part === undefined ? new Float32Array() : toFloats(part.data)
        },
        completed: (usage) => resolve({ vectors, promptTokens: usage.promptTokens }),
        failed: (error) => reject(toApiError(error)),
      },
    )
    response.on('close', () => {
      if (response.writableFinished) return
      run.drop()
      resolve(null)
    })
  })
}

function embedQuestion(
  prompt: Prompt,
  { cacheScope, cuts }: { cacheScope: string; cuts: boolean },
): Question {
  return {
    purpose: cuts ? 'embed-start' : 'embed',
    prompt,
    sampling: {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      logitBias: [],
      seed: '0',
    },
    tokensMax: 1,
    stop: [],
    ignoreEos: false,
    logprobs: null,
    grammar: null,
    cacheScope,
  }
}

function toFloats(data: string): Float32Array {
  const bytes = Buffer.from(data, 'base64')
  const floats = new Float32Array(Math.floor(bytes.length / 4))
  for (const index of floats.keys()) floats[index] = bytes.readFloatLE(index * 4)
  return floats
}
