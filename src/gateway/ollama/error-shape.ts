// Ollama's error object: a sentence.
import type { ApiError } from '../api-error.ts'

export function ollamaError(error: ApiError): { error: string } {
  return { error: error.message }
}
