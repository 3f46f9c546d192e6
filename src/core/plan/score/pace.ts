// How fast a group really decodes for one request alone, read from the figures its head publishes. A figure
// counts only between two others of the same lone request: the first holds its prompt, the last its end.

export interface PaceSample {
  readonly atMs: number
  readonly tokensPerSecond: number
  /** Requests that the head reads, writes or keeps waiting. */
  readonly queue: number
}

export interface Pace {
  readonly steady: readonly { readonly atMs: number; readonly tokensPerSecond: number }[]
  /** The newest figures of a run of one request, not yet known to be inside it. */
  readonly run: readonly PaceSample[]
}

export const noPace: Pace = { steady: [], run: [] }

/** Enough for a quarter of an hour of figures every few seconds. */
const steadyMax = 256
/** A median of fewer says little. */
export const steadySamplesMin = 3

export function takeSample(pace: Pace, sample: PaceSample): Pace {
  if (sample.queue !== 1 || sample.tokensPerSecond <= 0) return { ...pace, run: [] }
  const inside = pace.run.length >= 2 ? pace.run.at(-1) : undefined
  const { atMs = 0, tokensPerSecond = 0 } = inside ?? {}
  return {
    run: [...pace.run.slice(-1), sample],
    steady:
      inside === undefined
        ? pace.steady
        : [...pace.steady, { atMs, tokensPerSecond }].slice(-steadyMax),
  }
}

/** Null while too little was seen. */
export function paceOf(pace: Pace): number | null {
  if (pace.steady.length < steadySamplesMin) return null
  const sorted = pace.steady.map((one) => one.tokensPerSecond).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? null
}
