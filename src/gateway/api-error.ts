// A refusal that a client understands: a status, a kind, and what to change. Each protocol has its own
// envelope for it.
import type { GenerationError } from '../core/serving/request.ts'

export interface ApiErrorFields {
  readonly status: number
  readonly message: string
  readonly type?: string
  readonly code?: string | null
  readonly param?: string | null
  readonly retryAfterSeconds?: number
  readonly allow?: readonly string[]
}

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly param: string | null
  readonly retryAfterSeconds: number | null
  /** Methods that the path does have. */
  readonly allow: readonly string[]

  constructor(fields: ApiErrorFields) {
    super(fields.message)
    this.status = fields.status
    this.type = fields.type ?? (fields.status >= 500 ? 'server_error' : 'invalid_request_error')
    this.code = fields.code ?? null
    this.param = fields.param ?? null
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
    this.allow = fields.allow ?? []
  }
}

/** A 400 that names the field at fault. */
export function badField(param: string, message: string, code?: string): ApiError {
  return new ApiError({ status: 400, message, param, ...(code === undefined ? {} : { code }) })
}

interface Mapping {
  readonly status: number
  readonly type: string
  readonly code: string
}

const badRequest: Mapping = { status: 400, type: 'invalid_request_error', code: 'invalid_request' }
const notReady: Mapping = { status: 503, type: 'server_error', code: 'model_not_ready' }

/** What the worker or the state machine says, in the words of the API. Unknown codes are our own fault. */
const mappings: Readonly<Record<string, Mapping>> = {
  'prompt-too-long': { ...badRequest, code: 'context_length_exceeded' },
  'request-too-large': { ...badRequest, code: 'request_too_large' },
  'bad-prompt': badRequest,
  'bad-request': badRequest,
  'bad-grammar': { ...badRequest, code: 'invalid_schema' },
  unsupported: { ...badRequest, code: 'unsupported' },
  'model-unknown': { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  // nginx's number for a request that its client gave up; nothing standard says it better.
  cancelled: { status: 499, type: 'request_cancelled', code: 'cancelled' },
  overloaded: { status: 429, type: 'rate_limit_error', code: 'overloaded' },
  'model-unloaded': { ...notReady, code: 'model_unloaded' },
  'wait-expired': notReady,
  'no-room': { ...notReady, code: 'insufficient_memory' },
  stopping: { status: 503, type: 'server_error', code: 'stopping' },
}

const retryAfterSeconds = 2

export function toApiError({ code, message }: GenerationError): ApiError {
  const mapping = mappings[code] ?? { status: 500, type: 'server_error', code }
  const retry = mapping.status === 429 || mapping.status === 503 ? { retryAfterSeconds } : {}
  return new ApiError({ ...mapping, message, ...retry })
}
