// A small reader for comma-separated files: quoted fields, a header, and complaints that name the
// line and the column.

export interface CsvRow {
  readonly line: number
  readonly get: (column: string) => string
}

export type CsvOutcome =
  | { readonly kind: 'read'; readonly rows: readonly CsvRow[] }
  | { readonly kind: 'unreadable'; readonly message: string }

function splitLine(line: string): string[] | null {
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (let index = 0; index < line.length; index++) {
    const char = line.charAt(index)
    if (quoted) {
      if (char === '"' && line.charAt(index + 1) === '"') {
        cell += '"'
        index++
      } else if (char === '"') quoted = false
      else cell += char
    } else if (char === '"') quoted = true
    else if (char === ',') {
      cells.push(cell)
      cell = ''
    } else cell += char
  }
  if (quoted) return null
  cells.push(cell)
  return cells.map((text) => text.trim())
}

/** Reads `text`; every column in `wanted` must be in the header and in every row. */
export function readCsv(
  text: string,
  options: { readonly name: string; readonly wanted: readonly string[] },
): CsvOutcome {
  const { name, wanted } = options
  const unreadable = (message: string): CsvOutcome => ({ kind: 'unreadable', message })
  const lines = text.replace(/^﻿/, '').split(/\r?\n/)
  const headerIndex = lines.findIndex((line) => line.trim() !== '')
  if (headerIndex < 0) return unreadable(`${name} is empty; its first line must name the columns`)
  const header = splitLine(lines[headerIndex] ?? '') ?? []
  for (const column of wanted)
    if (!header.includes(column))
      return unreadable(
        `${name} line ${headerIndex + 1}: the column "${column}" is missing; the header has ${header.join(', ')}`,
      )
  const rows: CsvRow[] = []
  for (let index = headerIndex + 1; index < lines.length; index++) {
    const raw = lines[index] ?? ''
    if (raw.trim() === '') continue
    const line = index + 1
    const cells = splitLine(raw)
    if (cells === null) return unreadable(`${name} line ${line}: a quotation mark is never closed`)
    if (cells.length < header.length)
      return unreadable(
        `${name} line ${line}: ${cells.length} of ${header.length} columns are there; "${header[cells.length] ?? ''}" is missing`,
      )
    if (cells.length > header.length)
      return unreadable(
        `${name} line ${line}: ${cells.length} columns where the header has ${header.length}; quote text that holds a comma`,
      )
    rows.push({ line, get: (column) => cells[header.indexOf(column)] ?? '' })
  }
  return { kind: 'read', rows }
}
