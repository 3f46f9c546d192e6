// The response object: what was asked, echoed, and how far the answer has come.
import type { FinishReason, Usage } from '../../../core/serving/request.ts'
import type { ApiError } from '../../api-error.ts'
import type { OutputItem } from './output.ts'
import type { ResponsesRequest } from './request.ts'

export type ResponseStatus =
  | 'queued'
  | 'in_progress'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'cancelled'

export interface ResponseObject {
  readonly id: string
  readonly object: 'response'
  readonly status: ResponseStatus
  readonly output: readonly OutputItem[]
  readonly [field: string]: unknown
}

/** Everything that stays the same from the first event to the last. */
export interface ResponseHead {
  readonly id: string
  readonly created_at: number
  readonly [field: string]: unknown
}

export function responseHead(
  request: ResponsesRequest,
  { id, createdAt }: { id: string; createdAt: number },
): ResponseHead {
  return {
    id,
    object: 'response',
    created_at: createdAt,
    background: request.background ?? false,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: request.metadata ?? {},
    model: request.model,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
    store: request.store ?? true,
    temperature: request.temperature ?? null,
    text: request.text ?? { format: { type: 'text' } },
    tool_choice: request.tool_choice ?? 'auto',
    tools: request.tools ?? [],
    top_p: request.top_p ?? null,
    truncation: request.truncation ?? 'disabled',
    user: request.user ?? null,
  }
}

export interface ResponseState {
  readonly status: ResponseStatus
  readonly output: readonly OutputItem[]
  readonly usage?: Usage
  readonly error?: ApiError
}

export function responseObject(head: ResponseHead, state: ResponseState): ResponseObject {
  const { status, output, usage, error } = state
  return {
    ...head,
    object: 'response',
    status,
    error: error === undefined ? null : responseError(error),
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usage === undefined ? null : responseUsage(usage),
  }
}

export function statusFor(reason: FinishReason): 'completed' | 'incomplete' {
  return reason === 'length' ? 'incomplete' : 'completed'
}

function responseUsage(usage: Usage): Record<string, unknown> {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.promptTokens + usage.completionTokens,
  }
}

/** Codex retries what it knows as a rate limit, after the time that the message names. */
function responseError(error: ApiError): Record<string, unknown> {
  if (error.status !== 429) return { code: error.code ?? 'server_error', message: error.message }
  const wait = `try again in ${error.retryAfterSeconds ?? 2}s`
  return { code: 'rate_limit_exceeded', message: `${error.message}; ${wait}` }
}
