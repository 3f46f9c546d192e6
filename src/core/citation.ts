// How Bushel names a finding of its knowledge base: in sources and texts as "kb#306", where a test sees that
// it exists, and as a bare number for programs.

export type Citation = `kb#${number}`

export function findingIds(cites: readonly Citation[]): readonly number[] {
  return cites.map((cite) => Number(cite.slice('kb#'.length)))
}

/** "kb#2016, kb#2014 (more: bushel kb detail 2016)", or null when there is nothing to read. */
export function readMore(ids: readonly number[]): string | null {
  const [first] = ids
  if (first === undefined) return null
  return `${citationText(ids)} (more: bushel kb detail ${first})`
}

export function citationText(ids: readonly number[]): string {
  return ids.map((id) => `kb#${id}`).join(', ')
}
