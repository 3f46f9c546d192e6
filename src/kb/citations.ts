// How findings are cited: "kb#" and the id, anywhere in the project's texts and sources.

const citation = /\bkb#(\d{1,6})\b/g
const idAlone = /^\s*(?:kb)?\s*#?\s*(\d{1,6})\s*$/i

/** The cited ids in their order, each once. */
export function citedIds(text: string): number[] {
  return [...new Set(Array.from(text.matchAll(citation), (match) => Number(match[1])))]
}

export function citationOf(id: number): string {
  return `kb#${id}`
}

/** The id when that is all a person gave, in any of its spellings; otherwise null. */
export function idAskedFor(text: string): number | null {
  const id = idAlone.exec(text)?.[1]
  return id === undefined ? null : Number(id)
}
