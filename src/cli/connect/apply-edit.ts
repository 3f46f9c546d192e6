// Puts our settings into a client's own file and leaves everything else in it as it is.
import { parse as parseToml } from 'smol-toml'
import type { JsonValue } from '../../core/json.ts'
import type { Edit } from './clients.ts'

export type Edited =
  | { readonly kind: 'edited'; readonly text: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly reason: string }

/** `before` is what the file holds now, or null when there is none. */
export function applyEdit(before: string | null, edit: Edit): Edited {
  const edited = edit.kind === 'json' ? editJson(before, edit) : editToml(before, edit)
  return edited.kind === 'edited' && edited.text === before ? { kind: 'unchanged' } : edited
}

function editJson(before: string | null, { merge }: Extract<Edit, { kind: 'json' }>): Edited {
  let known: JsonValue = {}
  try {
    if (before !== null && before.trim() !== '') known = JSON.parse(before) as JsonValue
  } catch {
    return { kind: 'refused', reason: 'it is not plain JSON (comments?)' }
  }
  if (!isObject(known)) return { kind: 'refused', reason: 'it holds no JSON object' }
  const merged = mergeJson(known, merge)
  if (JSON.stringify(merged) === JSON.stringify(known)) return { kind: 'unchanged' }
  return { kind: 'edited', text: `${JSON.stringify(merged, null, 2)}\n` }
}

function mergeJson(known: JsonValue, more: JsonValue): JsonValue {
  if (!isObject(known) || !isObject(more)) return more
  const merged: Record<string, JsonValue> = { ...known }
  for (const [name, value] of Object.entries(more))
    merged[name] = name in merged ? mergeJson(merged[name] ?? null, value) : value
  return merged
}

function isObject(value: JsonValue): value is { readonly [name: string]: JsonValue } {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** By lines, so that a person's comments and order survive. */
function editToml(before: string | null, edit: Extract<Edit, { kind: 'toml' }>): Edited {
  const lines = (before ?? '').split('\n')
  while (lines.at(-1)?.trim() === '') lines.pop()
  for (const [name, value] of Object.entries(edit.top)) setTop(lines, name, value)
  setSection(lines, edit.section)
  const text = `${lines.join('\n')}\n`
  try {
    parseToml(before ?? '')
    parseToml(text)
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    return { kind: 'refused', reason: `it is not valid TOML: ${reason}` }
  }
  return { kind: 'edited', text }
}

/** Keys of the file itself stand before its first section. */
function setTop(lines: string[], name: string, value: string): void {
  const firstSection = lines.findIndex((line) => /^\s*\[/.test(line))
  const end = firstSection === -1 ? lines.length : firstSection
  const at = lines.slice(0, end).findIndex((line) => new RegExp(`^\\s*${name}\\s*=`).test(line))
  const line = `${name} = ${value}`
  if (at === -1) lines.unshift(line)
  else lines[at] = line
}

function setSection(
  lines: string[],
  { name, lines: body }: { name: string; lines: readonly string[] },
): void {
  const at = lines.findIndex((line) => line.trim() === `[${name}]`)
  if (at === -1) {
    lines.push('', `[${name}]`, ...body)
    return
  }
  let end = at + 1
  while (end < lines.length && !/^\s*\[/.test(lines[end] ?? '')) end += 1
  while (end > at + 1 && (lines[end - 1] ?? '').trim() === '') end -= 1
  lines.splice(at + 1, end - at - 1, ...body)
}
