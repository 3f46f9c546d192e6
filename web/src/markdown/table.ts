// Tables: a row of names, a row of dashes, rows of cells.

export interface Table {
  readonly kind: 'table'
  readonly aligns: readonly ('left' | 'center' | 'right' | null)[]
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const dashes = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

/** A longer row of dashes is no heading of a table. */
const dashesCharsMax = 1000

/** A table that begins at this line, or null. */
export function parseTable(
  lines: readonly string[],
  at: number,
): { table: Table; end: number } | null {
  const line = lines[at] ?? ''
  const under = lines[at + 1] ?? ''
  if (!line.includes('|') || under.length > dashesCharsMax || !dashes.test(under)) return null
  const head = cellsOf(line)
  const marks = cellsOf(under)
  if (head.length !== marks.length) return null
  const rows: (readonly string[])[] = []
  let end = at + 2
  while (end < lines.length && (lines[end] ?? '').includes('|')) {
    const cells = cellsOf(lines[end] ?? '')
    rows.push(head.map((_, column) => cells[column] ?? ''))
    end += 1
  }
  return { table: { kind: 'table', aligns: marks.map(alignOf), head, rows }, end }
}

function cellsOf(line: string): readonly string[] {
  const inside = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

function alignOf(mark: string): Table['aligns'][number] {
  const isRight = mark.endsWith(':')
  if (mark.startsWith(':')) return isRight ? 'center' : 'left'
  return isRight ? 'right' : null
}
