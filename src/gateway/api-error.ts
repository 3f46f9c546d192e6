// A refusal that a client understands: a status, OpenAI's error shape, and what to change.
import type { GenerationError } from '../core/serving/request.ts'

export interface ApiErrorFields {
  readonly status: number
  readonly message: string
  readonly type?: string
  readonly code?: string | null
  readonly param?: string | null
  readonly retryAfterSeconds?: number
}

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly param: string | null
  readonly retryAfterSeconds: number | null

  constructor(fields: ApiErrorFields) {
    super(fields.message)
    this.status = fields.status
    this.type = fields.type ?? (fields.status >= 500 ? 'server_error' : 'invalid_request_error')
    this.code = fields.code ?? null
    this.param = fields.param ?? null
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
  }
}

interface Mapping {
  readonly status: number
  readonly type: string
  readonly code: string
}

const badRequest: Mapping = { status: 400, type: 'invalid_request_error', code: 'invalid_request' }

/** What the worker or the state machine says, in the words of the API. Unknown codes are our own fault. */
const mappings: Readonly<Record<string, Mapping>> = {
  'prompt-too-long': { ...badRequest, code: 'context_length_exceeded' },
  'request-too-large': { ...badRequest, code: 'request_too_large' },
  'bad-prompt': badRequest,
  'bad-request': badRequest,
  'bad-grammar': { ...badRequest, code: 'invalid_schema' },
  unsupported: { ...badRequest, code: 'unsupported' },
  overloaded: { status: 429, type: 'rate_limit_error', code: 'overloaded' },
  'model-unloaded': { status: 503, type: 'server_error', code: 'model_unloaded' },
  'wait-expired': { status: 503, type: 'server_error', code: 'model_not_ready' },
  stopping: { status: 503, type: 'server_error', code: 'stopping' },
}

const retryAfterSeconds = 2

export function toApiError({ code, message }: GenerationError): ApiError {
  const mapping = mappings[code] ?? { status: 500, type: 'server_error', code }
  const retry = mapping.status === 429 || mapping.status === 503 ? { retryAfterSeconds } : {}
  return new ApiError({ ...mapping, message, ...retry })
}
