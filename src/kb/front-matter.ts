// Splits a file into its head (TOML between two lines of "+++") and its text, and knows on which
// line each key of the head stands, so that a complaint can point at it.
import { TomlError, parse } from 'smol-toml'
import type { z } from 'zod'
import type { Problem } from './problems.ts'

export interface SplitFile {
  readonly file: string
  readonly head: Record<string, unknown>
  readonly headLines: readonly string[]
  /** The lines of the file on which the head and the text begin. */
  readonly headLine: number
  readonly textLine: number
  readonly text: string
}

export type SplitOutcome =
  | { readonly kind: 'split'; readonly split: SplitFile }
  | { readonly kind: 'malformed'; readonly problem: Problem }

const fence = '+++'

export function splitFile(file: string, content: string): SplitOutcome {
  const lines = linesOf(content)
  if (lines[0]?.trim() !== fence)
    return malformed(file, 1, `must begin with a line "${fence}" and a head in TOML`)
  const end = lines.findIndex((line, index) => index > 0 && line.trim() === fence)
  if (end === -1)
    return malformed(file, lines.length, `the head is not closed by a line "${fence}"`)
  return parseHead({
    file,
    headLines: lines.slice(1, end),
    headLine: 2,
    below: lines.slice(end + 1),
  })
}

/** A file that is TOML from its first line to its last. */
export function plainToml(file: string, content: string): SplitOutcome {
  return parseHead({ file, headLines: linesOf(content), headLine: 1, below: [] })
}

function linesOf(content: string): string[] {
  return content.replace(/^\uFEFF/, '').split(/\r?\n/)
}

function malformed(file: string, line: number, message: string): SplitOutcome {
  return { kind: 'malformed', problem: { file, line, message } }
}

function parseHead(
  cut: Pick<SplitFile, 'file' | 'headLines' | 'headLine'> & { below: readonly string[] },
): SplitOutcome {
  const { file, headLines, headLine, below } = cut
  try {
    const head = parse(headLines.join('\n')) as Record<string, unknown>
    const blank = below.findIndex((line) => line.trim() !== '')
    const textLine = headLine + headLines.length + 1 + Math.max(blank, 0)
    const text = below.join('\n').trim()
    return { kind: 'split', split: { file, head, headLines, headLine, textLine, text } }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '') ?? ''
    return malformed(file, error.line - 1 + headLine, `the head is not valid TOML: ${reason}`)
  }
}

/** The line of the file on which the value at `path` is written; the first line when unknown. */
export function lineOfKey(split: SplitFile, path: readonly PropertyKey[]): number {
  const [first, second, third] = path.map(String)
  if (first === undefined) return 1
  const find = (pattern: RegExp, from: number): number =>
    split.headLines.findIndex((line, index) => index >= from && pattern.test(line))
  const key = (name: string): RegExp => new RegExp(`^\\s*"?${escapeRegExp(name)}"?\\s*=`)
  const plain = find(key(first), 0)
  if (plain !== -1) return plain + split.headLine
  const table = new RegExp(`^\\s*\\[\\[${escapeRegExp(first)}\\]\\]`)
  let at = find(table, 0)
  for (let skipped = 0; skipped < Number(second ?? 0) && at !== -1; skipped += 1)
    at = find(table, at + 1)
  if (at === -1) return 1
  const inside = third === undefined ? -1 : find(key(third), at)
  return (inside === -1 ? at : inside) + split.headLine
}

/** What the schema found wrong, each with the line of the key it concerns. */
export function problemsOf(split: SplitFile, error: z.ZodError): Problem[] {
  return error.issues.map((issue) => {
    const unknown = issue.code === 'unrecognized_keys' ? issue.keys : []
    const name = issue.path.map(String).join('.')
    const message =
      unknown.length > 0
        ? `unknown key ${unknown.map((key) => `"${key}"`).join(', ')}`
        : `${name === '' ? 'the head' : `"${name}"`}: ${issue.message}`
    return { file: split.file, line: lineOfKey(split, [...issue.path, ...unknown]), message }
  })
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
