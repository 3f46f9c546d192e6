// Markdown's blocks as models write them: a forgiving subset, read line by line into data, never into HTML.
import { parseTable, type Table } from './table.ts'

export type BlockContent =
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  /** Open while its last line has not arrived. */
  | {
      readonly kind: 'code'
      readonly language: string
      readonly text: string
      readonly isOpen: boolean
    }
  | {
      readonly kind: 'list'
      readonly start: number | null
      readonly items: readonly (readonly Block[])[]
    }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'rule' }
  | Table

/** Its source tells whether it must be drawn again. */
export type Block = BlockContent & { readonly source: string }

interface Lines {
  readonly lines: readonly string[]
  readonly at: number
  readonly depth: number
}

interface Read {
  readonly content: BlockContent
  readonly end: number
}

const depthMax = 8
const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/
const heading = /^ {0,3}(#{1,6})(?:\s|$)/
const rule = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/
const quote = /^ {0,3}> ?/
const item = /^( {0,3})([-*+•]|\d{1,9}[.)])( +|$)/

export function parseBlocks(text: string): readonly Block[] {
  return readBlocks(text.replaceAll('\r\n', '\n').replaceAll('\t', '    ').split('\n'), 0)
}

function readBlocks(lines: readonly string[], depth: number): readonly Block[] {
  const blocks: Block[] = []
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      at += 1
      continue
    }
    const { content, end } = readBlock({ lines, at, depth })
    blocks.push({ ...content, source: lines.slice(at, end).join('\n') })
    at = end
  }
  return blocks
}

function readBlock(place: Lines): Read {
  const { lines, at, depth } = place
  const line = lines[at] ?? ''
  if (isFence(line)) return readCode(place)
  const marks = heading.exec(line)
  if (marks !== null) {
    const text = line
      .slice(marks[0].length)
      .replace(/#+\s*$/, '')
      .trim()
    return { content: { kind: 'heading', level: marks[1]?.length ?? 1, text }, end: at + 1 }
  }
  if (rule.test(line)) return { content: { kind: 'rule' }, end: at + 1 }
  if (depth < depthMax && quote.test(line)) return readQuote(place)
  if (depth < depthMax && item.test(line)) return readList(place)
  const table = parseTable(lines, at)
  if (table !== null) return { content: table.table, end: table.end }
  return readParagraph(place)
}

/** Ticks further on in the same line make it inline code. */
function isFence(line: string): boolean {
  const [, marker = '', info = ''] = fence.exec(line) ?? []
  return marker !== '' && !(marker.startsWith('`') && info.includes('`'))
}

function readCode({ lines, at }: Lines): Read {
  const line = lines[at] ?? ''
  const [, marker = '```', info = ''] = fence.exec(line) ?? []
  const indent = indentOf(line)
  let end = at + 1
  while (end < lines.length && !closesFence(lines[end] ?? '', marker)) end += 1
  const inside = lines.slice(at + 1, end).map((other) => withoutIndent(other, indent))
  const isOpen = end === lines.length
  const [language = ''] = info.trim().split(/\s/, 1)
  const content = { kind: 'code', language, text: inside.join('\n'), isOpen } as const
  return { content, end: isOpen ? end : end + 1 }
}

function closesFence(line: string, marker: string): boolean {
  const text = line.trim()
  return text.startsWith(marker) && text === marker.charAt(0).repeat(text.length)
}

function readQuote({ lines, at, depth }: Lines): Read {
  let end = at
  while (end < lines.length && quote.test(lines[end] ?? '')) end += 1
  const inside = lines.slice(at, end).map((line) => line.replace(quote, ''))
  return { content: { kind: 'quote', blocks: readBlocks(inside, depth + 1) }, end }
}

function readList({ lines, at, depth }: Lines): Read {
  const first = item.exec(lines[at] ?? '')
  const bullet = first?.[2] ?? '-'
  const isOrdered = /\d/.test(bullet)
  const items: (readonly Block[])[] = []
  let end = at
  for (let next = at; next < lines.length;) {
    const marker = item.exec(lines[next] ?? '')
    if (marker === null || rule.test(lines[next] ?? '') || /\d/.test(marker[2] ?? '') !== isOrdered)
      break
    const itemEnd = endOfItem(lines, next)
    items.push(readBlocks(itemLines(lines.slice(next, itemEnd), marker[0].length), depth + 1))
    end = itemEnd
    next = itemEnd
    // Blank lines between items belong to the list only when another item follows.
    while (next < lines.length && isBlank(lines[next])) next += 1
  }
  const start = isOrdered ? Number.parseInt(bullet, 10) : null
  return { content: { kind: 'list', start, items }, end }
}

/** Models indent what belongs to an item by two to four blanks, whatever its marker's width. */
const belongsIndent = 2

function endOfItem(lines: readonly string[], at: number): number {
  let end = at + 1
  let openFence: string | null = null
  for (let next = end; next < lines.length; next++) {
    const line = lines[next] ?? ''
    // Code belongs to the item it was begun in, however it is indented.
    if (openFence !== null) {
      if (closesFence(line, openFence)) openFence = null
      end = next + 1
      continue
    }
    if (isBlank(line)) continue
    const isInside = indentOf(line) >= belongsIndent
    // A paragraph may go on without being indented; code that has ended may not.
    const isLazy = next === end && !startsBlock(line) && !isFence(lines[next - 1]?.trim() ?? '')
    if (!isInside && !isLazy) break
    openFence = isFence(line.trim()) ? (fence.exec(line.trim())?.[1] ?? null) : null
    end = next + 1
  }
  return end
}

function itemLines(lines: readonly string[], markerWidth: number): readonly string[] {
  const [first = '', ...rest] = lines
  const depths = rest.filter((line) => !isBlank(line)).map(indentOf)
  const inner = Math.min(markerWidth, ...depths.filter((indent) => indent >= belongsIndent))
  return [first.slice(markerWidth), ...rest.map((line) => withoutIndent(line, inner))]
}

function readParagraph({ lines, at }: Lines): Read {
  let end = at + 1
  while (
    end < lines.length &&
    !isBlank(lines[end]) &&
    !startsBlock(lines[end] ?? '') &&
    parseTable(lines, end) === null
  )
    end += 1
  const text = lines
    .slice(at, end)
    .map((line) => line.trimStart())
    .join('\n')
    .trimEnd()
  return { content: { kind: 'paragraph', text }, end }
}

function startsBlock(line: string): boolean {
  return (
    isFence(line) || heading.test(line) || rule.test(line) || quote.test(line) || item.test(line)
  )
}

function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === ''
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

function withoutIndent(line: string, indent: number): string {
  return line.slice(Math.min(indent, indentOf(line)))
}
