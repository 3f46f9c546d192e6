// How findings are cited: "kb#" and the id, anywhere in the project's texts and sources.

const citation = /\bkb#(\d{1,6})\b/g

/** The cited ids in their order, each once. */
export function citedIds(text: string): number[] {
  return [...new Set(Array.from(text.matchAll(citation), (match) => Number(match[1])))]
}

export function citationOf(id: number): string {
  return `kb#${id}`
}
