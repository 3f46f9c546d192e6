// What a simulated model answers: a fixed sequence for each request, so that every token a client gets can
// be compared with the unbroken answer.
import type { Question } from '../core/serving/request.ts'

export interface Answer {
  readonly number: number
  readonly length: number
  /** No worker will take it, here or anywhere: too long for any context, say. */
  readonly isRefused: boolean
}

export const refusalCode = 'context-exceeded'

export function questionFor({ number, length, isRefused }: Answer): Question {
  return {
    prompt: { kind: 'text', text: `${number}:${length}:${isRefused ? 1 : 0}` },
    sampling: {
      temperature: 1,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      logitBias: [],
      seed: String(number),
    },
    tokensMax: length,
    stop: [],
    ignoreEos: false,
    logprobs: null,
    grammar: null,
    cacheScope: '',
  }
}

/** The answer to a prompt made by questionFor(). */
export function answerTo(prompt: { readonly kind: string }): Answer {
  const text = 'text' in prompt && typeof prompt.text === 'string' ? prompt.text : '0:1:0'
  const [number = '0', length = '1', refused = '0'] = text.split(':')
  return { number: Number(number), length: Number(length), isRefused: refused === '1' }
}

export function tokenAt({ number }: Answer, position: number): number {
  let hash = Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(position + 1, 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash >>> 8) % 50_000
}
