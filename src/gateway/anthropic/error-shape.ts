// Anthropic's error object.
import type { ApiError } from '../api-error.ts'

const typeByStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  415: 'invalid_request_error',
  429: 'rate_limit_error',
  499: 'invalid_request_error',
  503: 'overloaded_error',
}

export function anthropicError(error: ApiError): { type: 'error'; error: Record<string, unknown> } {
  const type = typeByStatus[error.status] ?? 'api_error'
  return { type: 'error', error: { type, message: error.message } }
}
