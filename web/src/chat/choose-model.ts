// Which model the next question goes to.
import type { ModelEntry } from '../api/client.ts'

export function chooseModel(from: {
  models: readonly ModelEntry[]
  /** The most important first; what does not exist is passed over. */
  wishes: readonly (string | null | undefined)[]
}): string | null {
  const { models, wishes } = from
  const wished = wishes.find((wish) => models.some(({ id }) => id === wish))
  return wished ?? models.find(({ loaded }) => loaded)?.id ?? models[0]?.id ?? null
}
