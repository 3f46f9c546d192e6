// How long a group takes to its first token, read from requests that had it to themselves and scaled to
// the prompt that the prediction was made for.
import { medianOf } from '../probe/measured.ts'

export interface PromptRead {
  /** Tokens that had to be read: what was kept from an earlier request is left out. */
  readonly tokens: number
  /** From taking the request to its first token. */
  readonly seconds: number
}

/** Reading takes nearly in proportion to length, but not from a greeting to a book. */
const scaleMax = 4

/** Null when nothing of about that length was read. */
export function firstTokenSeconds(
  reads: readonly PromptRead[],
  promptTokens: number,
): number | null {
  const scaled = reads
    .filter(({ tokens }) => tokens >= promptTokens / scaleMax && tokens <= promptTokens * scaleMax)
    .map(({ tokens, seconds }) => (seconds * promptTokens) / tokens)
  return scaled.length === 0 ? null : medianOf(scaled)
}
