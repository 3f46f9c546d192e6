// Which model the next question goes to.
import type { ModelEntry } from '../api/client.ts'

export function chooseModel(from: {
  models: readonly ModelEntry[]
  /** What this chat used last, then what the person chose last anywhere. */
  wishes: readonly (string | null | undefined)[]
}): string | null {
  const { models, wishes } = from
  const wished = wishes.find((wish) => models.some(({ id }) => id === wish))
  return wished ?? models.find(({ loaded }) => loaded)?.id ?? models[0]?.id ?? null
}
