// One line about each machine that runs well under its prediction, wherever people look.
import { formatDuration } from '../core/units.ts'
import type { SlowView } from '../wire/cluster-view.ts'

export function slowLines(slow: readonly SlowView[]): readonly string[] {
  return slow.map(
    ({ machine, model, ratio, sinceMs, cause, advice }) =>
      `${machine} runs ${model} at ${Math.round(ratio * 100)}% of what was predicted, for ${formatDuration(sinceMs)}: ${cause}; ${advice}`,
  )
}
