// Which protocol a request speaks, told by its path, and the envelope that protocol puts errors in.
import { anthropicError } from './anthropic/error-shape.ts'
import type { ApiError } from './api-error.ts'
import type { GatewayContext } from './context.ts'
import { ollamaError } from './ollama/error-shape.ts'
import { openAiError } from './openai/error-shape.ts'

export type Envelope = (error: ApiError) => object

export function envelopeFor(path: string, headers: { anthropicVersion: boolean }): Envelope {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return anthropicError
  if (path === '/api' || path.startsWith('/api/')) return ollamaError
  // Both list models under one path; Anthropic's clients say who they are.
  if (headers.anthropicVersion && path.startsWith('/v1/models')) return anthropicError
  return openAiError
}

export function errorResponse(c: GatewayContext, error: ApiError): Response {
  const anthropicVersion = c.req.header('anthropic-version') !== undefined
  const envelope = envelopeFor(c.req.path, { anthropicVersion })
  const headers = new Headers()
  if (error.retryAfterSeconds !== null) headers.set('retry-after', String(error.retryAfterSeconds))
  if (error.allow.length > 0) headers.set('allow', error.allow.join(', '))
  return Response.json(envelope(error), { status: error.status, headers })
}
