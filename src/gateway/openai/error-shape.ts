// OpenAI's error object.
import type { ApiError } from '../api-error.ts'

export function openAiError(error: ApiError): { error: Record<string, unknown> } {
  const { message, type, param, code } = error
  return { error: { message, type, param, code } }
}
