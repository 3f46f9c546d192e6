// The inside of a line: emphasis, code, links. A small part of Markdown, read in linear time, into data.
import { isBlank, isPunctuation, isWord, runLength } from './characters.ts'
import { type FoundLink, findAddress, findLink } from './links.ts'

export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'break' }
  | { readonly kind: 'strong' | 'emphasis' | 'strike'; readonly children: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly children: readonly Inline[] }

interface Found {
  readonly node: Inline
  /** Where reading goes on. */
  readonly end: number
}

interface Place {
  readonly text: string
  readonly at: number
  /** Markers looked for in vain: what is not ahead of here is not ahead of later places either. */
  readonly absent: Set<string>
  readonly depth: number
}

const depthMax = 6

export function parseInline(text: string, depth = 0): readonly Inline[] {
  if (depth > depthMax) return [{ kind: 'text', text }]
  const nodes: Inline[] = []
  const absent = new Set<string>()
  let plain = ''
  const add = (node: Inline): void => {
    if (plain !== '') nodes.push({ kind: 'text', text: plain })
    plain = ''
    nodes.push(node)
  }
  for (let at = 0; at < text.length;) {
    const char = text.charAt(at)
    const found = findAt({ text, at, absent, depth })
    if (found !== null) {
      add(found.node)
      at = found.end
    } else if (char === '\\' && isPunctuation(text.charAt(at + 1))) {
      plain += text.charAt(at + 1)
      at += 2
    } else if (char === '\n') {
      plain = plain.trimEnd()
      add({ kind: 'break' })
      at += 1
    } else {
      // A run of one marker is taken whole, so that its rest is not tried as a marker of its own.
      const length = '*_~`'.includes(char) ? runLength(text, at) : 1
      plain += text.slice(at, at + length)
      at += length
    }
  }
  if (plain !== '') nodes.push({ kind: 'text', text: plain })
  return nodes
}

function findAt(place: Place): Found | null {
  const { text, at, depth } = place
  switch (text.charAt(at)) {
    case '`':
      return findCode(place)
    case '*':
    case '_':
    case '~':
      return findEmphasis(place)
    case '[':
      return linkNode(findLink(text, at), depth)
    case '!':
      // Pictures from elsewhere are not loaded; they become links.
      return text.charAt(at + 1) === '[' ? linkNode(findLink(text, at + 1), depth) : null
    case '<':
    case 'h':
      return addressNode(findAddress(text, at))
    default:
      return null
  }
}

function linkNode(found: FoundLink | null, depth: number): Found | null {
  if (found === null) return null
  const inside = parseInline(found.label, depth + 1)
  const children = inside.flatMap((node) => (node.kind === 'link' ? node.children : [node]))
  return { node: { kind: 'link', href: found.href, children }, end: found.end }
}

function addressNode(found: FoundLink | null): Found | null {
  if (found === null) return null
  const { href, label, end } = found
  return { node: { kind: 'link', href, children: [{ kind: 'text', text: label }] }, end }
}

function findCode({ text, at, absent }: Place): Found | null {
  const length = runLength(text, at)
  const close = closingTicks(text, { from: at + length, length }, absent)
  if (close === null) return null
  const inside = text.slice(at + length, close).replaceAll('\n', ' ')
  // One blank on either side only keeps a tick inside apart from the markers.
  const isPadded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== ''
  const node = { kind: 'code', text: isPadded ? inside.slice(1, -1) : inside } as const
  return { node, end: close + length }
}

function closingTicks(
  text: string,
  { from, length }: { from: number; length: number },
  absent: Set<string>,
): number | null {
  const key = '`'.repeat(length)
  if (absent.has(key)) return null
  for (let at = text.indexOf('`', from); at !== -1;) {
    const run = runLength(text, at)
    if (run === length) return at
    at = text.indexOf('`', at + run)
  }
  absent.add(key)
  return null
}

function findEmphasis({ text, at, absent, depth }: Place): Found | null {
  const char = text.charAt(at)
  const length = runLength(text, at)
  if (length > 3 || (char === '~' && length !== 2)) return null
  const start = at + length
  if (isBlank(text.charAt(start))) return null
  if (char === '_' && isWord(text.charAt(at - 1))) return null
  const close = closingRun(text, { from: start, char, length }, absent)
  if (close === null) return null
  const children = parseInline(text.slice(start, close), depth + 1)
  return { node: wrap(children, { char, length }), end: close + length }
}

function wrap(children: readonly Inline[], by: { char: string; length: number }): Inline {
  if (by.char === '~') return { kind: 'strike', children }
  if (by.length === 1) return { kind: 'emphasis', children }
  if (by.length === 2) return { kind: 'strong', children }
  return { kind: 'strong', children: [{ kind: 'emphasis', children }] }
}

function closingRun(
  text: string,
  { from, char, length }: { from: number; char: string; length: number },
  absent: Set<string>,
): number | null {
  const key = char.repeat(length)
  if (absent.has(key)) return null
  for (let at = from; at < text.length;) {
    const here = text.charAt(at)
    if (here === '\\') at += 2
    else if (here === '`') {
      const ticks = runLength(text, at)
      at = (closingTicks(text, { from: at + ticks, length: ticks }, absent) ?? at) + ticks
    } else if (here === char) {
      const run = runLength(text, at)
      // A run of three closes what is inside as well; ours are then its last markers.
      const fits = run === length || run === 3
      const isInWord = char === '_' && isWord(text.charAt(at + run))
      if (at > from && fits && !isInWord && !isBlank(text.charAt(at - 1))) return at + run - length
      at += run
    } else at += 1
  }
  absent.add(key)
  return null
}
