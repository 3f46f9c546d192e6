// The figures under an answer. All are measured here; where only a part could be seen, they say "at least".
import type { Answer } from './answer.ts'

export interface Count {
  readonly value: number
  /** Counted from pieces that were seen; the server's own count did not arrive. */
  readonly isLowerBound: boolean
}

export interface Figures {
  readonly firstTokenMs: number | null
  readonly tokens: Count | null
  readonly tokensPerSecond: Count | null
}

/** A rate over less time than this says more about the network than about the model. */
const rateWindowMsMin = 50

export function figuresOf(answer: Answer): Figures {
  const { firstTokenMs, usage, pieces } = answer
  if (firstTokenMs === null) return { firstTokenMs: null, tokens: null, tokensPerSecond: null }
  const tokens = {
    value: usage?.completionTokens ?? pieces,
    isLowerBound: usage === null,
  }
  // The server's count runs to the end of the answer; our own to the last piece that was seen.
  const untilMs = usage === null ? answer.lastTokenMs : answer.endedMs
  const windowMs = (untilMs ?? firstTokenMs) - firstTokenMs
  // The first token opens the window, so it is not one of those that were made within it.
  const made = tokens.value - 1
  const tokensPerSecond =
    made < 1 || windowMs < rateWindowMsMin
      ? null
      : { value: (made * 1000) / windowMs, isLowerBound: tokens.isLowerBound }
  return { firstTokenMs, tokens, tokensPerSecond }
}

/** From the first thought to the first word of the answer; null while it still thinks or never did. */
export function reasoningMs({
  reasoning,
  firstTokenMs,
  firstTextMs,
  endedMs,
}: Answer): number | null {
  if (reasoning === '' || firstTokenMs === null) return null
  const until = firstTextMs ?? endedMs
  return until === null ? null : until - firstTokenMs
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  return `${Math.floor(whole / 60)} min ${whole % 60} s`
}

export function formatRate({ value, isLowerBound }: Count): string {
  const figure = value < 9.95 ? value.toFixed(1) : String(Math.round(value))
  return `${isLowerBound ? '≥ ' : ''}${figure} tok/s`
}

export function formatTokens({ value, isLowerBound }: Count): string {
  return `${isLowerBound ? '≥ ' : ''}${value} ${value === 1 ? 'token' : 'tokens'}`
}
