// One question to a model, whatever protocol it came in. Gateways parse into this; workers answer it.
import type { DeploymentId, GenerationId } from '../ids.ts'
import type { JsonValue } from '../json.ts'

export interface ToolCall {
  readonly id?: string
  readonly function: { readonly name: string; readonly arguments: JsonValue }
}

export interface ChatMessage {
  readonly role: string
  readonly content: string
  readonly reasoning?: string
  readonly name?: string
  readonly toolCalls?: readonly ToolCall[]
  readonly toolCallId?: string
}

/** Whether the model may, must not or must call a tool, or which one it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

export type Prompt =
  | {
      readonly kind: 'chat'
      readonly messages: readonly ChatMessage[]
      /** As chat templates know them: { type: 'function', function: { name, description, parameters } }. */
      readonly tools: readonly JsonValue[]
      readonly toolChoice: ToolChoice
      readonly parallelToolCalls: boolean
      readonly variables: Readonly<Record<string, JsonValue>>
      readonly nowMs: number
    }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'ids'; readonly ids: readonly number[] }

export interface Sampling {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly repetitionPenalty: number
  readonly presencePenalty: number
  readonly frequencyPenalty: number
  readonly logitBias: readonly (readonly [number, number])[]
  readonly seed: string
}

export type Grammar =
  | { readonly kind: 'json-object' }
  | { readonly kind: 'json-schema'; readonly schema: JsonValue }
  | { readonly kind: 'regex'; readonly pattern: string }
  | { readonly kind: 'lark'; readonly text: string }

/**
 * An answer, the number of tokens in the prompt alone, the prompt's embedding, or that of as much of its beginning
 * as the model reads.
 */
export type Purpose = 'answer' | 'count' | 'embed' | 'embed-start'

/** What a worker needs to answer; the same for every attempt. */
export interface Question {
  /** Absent: an answer. */
  readonly purpose?: Purpose
  readonly prompt: Prompt
  readonly sampling: Sampling
  readonly tokensMax: number | null
  readonly stop: readonly string[]
  readonly ignoreEos: boolean
  readonly logprobs: number | null
  readonly grammar: Grammar | null
  readonly cacheScope: string
}

export interface GenerationRequest {
  readonly id: GenerationId
  readonly deployment: DeploymentId
  readonly question: Question
}

export type Part =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A whole call at once; arguments are JSON text. */
  | { readonly type: 'tool-call'; readonly name: string; readonly arguments: string }
  /** A call as it is written: one start, pieces of its arguments' text, one end. Calls never interleave. */
  | { readonly type: 'tool-call-start'; readonly name: string }
  | { readonly type: 'tool-call-delta'; readonly arguments: string }
  | { readonly type: 'tool-call-end' }
  /** The stop string that ended the answer; it is not part of the text. */
  | { readonly type: 'stop'; readonly text: string }
  /** Little-endian 32-bit floats in base64. */
  | { readonly type: 'embedding'; readonly data: string }

export interface TokenLogprob {
  readonly text: string
  readonly bytes?: readonly number[]
  readonly logprob: number
  readonly top: readonly {
    readonly token: number
    readonly text: string
    readonly logprob: number
  }[]
}

export interface Token {
  readonly id: number
  readonly parts: readonly Part[]
  readonly logprob?: TokenLogprob
}

export type FinishReason = 'stop' | 'length' | 'tool-calls' | 'cancelled'

export interface Usage {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly completionTokens: number
  readonly reasoningTokens: number
}

/** Why a generation ended without an answer; the gateway turns the code into a status. */
export interface GenerationError {
  readonly code: string
  readonly message: string
}
