// Reads a model's citations, in whatever way it writes them, and takes out those it made up.
import { citationOf } from './citations.ts'

export interface CheckedText {
  /** The text with its citations in our form, without the invented ones. */
  readonly text: string
  readonly cites: readonly number[]
  readonly removed: readonly number[]
}

/** kb#306, [306], [#306], #306 and "finding 306"; but not mlx#3467, which names an issue. */
const anyCitation =
  /\bkb\s?#\s?(\d{1,6})\b|\[#?(\d{2,6})\]|(?<![\w/])#(\d{2,6})\b|\bfinding\s+#?(\d{2,6})\b/gi

export function checkCitations(text: string, allowed: ReadonlySet<number>): CheckedText {
  const cites = new Set<number>()
  const removed = new Set<number>()
  const checked = text.replace(anyCitation, (whole, ...groups: unknown[]) => {
    const id = Number(groups.slice(0, 4).find((group) => group !== undefined))
    if (!allowed.has(id)) {
      removed.add(id)
      return ''
    }
    cites.add(id)
    return whole.startsWith('[') ? `[${citationOf(id)}]` : citationOf(id)
  })
  return { text: tidy(checked), cites: [...cites], removed: [...removed] }
}

/** Closes the holes that a removed citation leaves behind. */
function tidy(text: string): string {
  return text
    .replace(/([([])(?:\s*[,;]|\s*\band\b)+\s*/g, '$1')
    .replace(/(?:\s*[,;]|\s*\band\b)+\s*([)\]])/g, '$1')
    .replace(/,(?:\s*,)+/g, ',')
    .replace(/\(\s*\)|\[\s*\]/g, '')
    .replace(/[ \t]+([.,;:!?])/g, '$1')
    .replace(/[ \t]{2,}/g, ' ')
    .trim()
}
