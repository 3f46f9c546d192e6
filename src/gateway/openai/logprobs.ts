// Probabilities of chosen tokens and their rivals, in the shape of chat completions.
import type { Token, TokenLogprob } from '../../core/serving/request.ts'

function entry(token: TokenLogprob): Record<string, unknown> {
  return {
    token: token.text,
    logprob: token.logprob,
    bytes: token.bytes ?? bytesOf(token.text),
    top_logprobs: token.top.map((other) => ({
      token: other.text,
      logprob: other.logprob,
      bytes: bytesOf(other.text),
    })),
  }
}

function bytesOf(text: string): readonly number[] {
  return [...Buffer.from(text, 'utf8')]
}

/** Of the message's own text: what the model thought or called is not part of it. */
export function logprobEntries(tokens: readonly Token[]): readonly Record<string, unknown>[] {
  const entries: Record<string, unknown>[] = []
  for (const { logprob, parts } of tokens) {
    if (logprob === undefined) continue
    if (parts.length > 0 && parts.every((part) => part.type !== 'content')) continue
    entries.push(entry(logprob))
  }
  return entries
}
