// Links in a line: [label](address), <address> and bare addresses.
import { isWord } from './characters.ts'

export interface FoundLink {
  readonly href: string
  readonly label: string
  /** Where reading goes on. */
  readonly end: number
}

const labelCharsMax = 500
const urlCharsMax = 2000

/** At an opening bracket. */
export function findLink(text: string, at: number): FoundLink | null {
  const close = closingBracket(text, at, labelCharsMax)
  if (close === null || text.charAt(close + 1) !== '(') return null
  const end = closingBracket(text, close + 1, urlCharsMax)
  if (end === null) return null
  const [href = ''] = text
    .slice(close + 2, end)
    .trim()
    .split(/\s/, 1)
  if (!isSafe(href)) return null
  const label = text.slice(at + 1, close)
  return { href, label: label === '' ? href : label, end: end + 1 }
}

/** Only addresses that open a page or a mail; never script, data or files. */
function isSafe(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)\S+$/i.test(href)
}

function closingBracket(text: string, open: number, charsMax: number): number | null {
  const [opener, closer] = text.charAt(open) === '[' ? ['[', ']'] : ['(', ')']
  const end = Math.min(text.length, open + charsMax)
  let nested = 0
  for (let at = open; at < end; at++) {
    const char = text.charAt(at)
    if (char === '\\') at += 1
    else if (char === opener) nested += 1
    else if (char === closer && --nested === 0) return at
  }
  return null
}

const address = /https?:\/\/[^\s<>"`]+/y

/** At "<" or at the first letter of an address. */
export function findAddress(text: string, at: number): FoundLink | null {
  const isBracketed = text.charAt(at) === '<'
  if (!isBracketed && isWord(text.charAt(at - 1))) return null
  const start = isBracketed ? at + 1 : at
  address.lastIndex = start
  const match = address.exec(text)?.[0]
  if (match === undefined) return null
  if (isBracketed) {
    const end = start + match.length
    return text.charAt(end) === '>' ? { href: match, label: match, end: end + 1 } : null
  }
  const href = withoutTail(match)
  if (!isSafe(href)) return null
  return { href, label: href, end: start + href.length }
}

/** The full stop behind an address ends the sentence, not the address; so does a bracket opened before it. */
function withoutTail(match: string): string {
  let end = match.length
  for (; end > 0; end--) {
    const last = match.charAt(end - 1)
    const isStray =
      (last === ')' || last === ']') && !match.slice(0, end).includes(last === ')' ? '(' : '[')
    if (!isStray && !".,;:!?'*_~".includes(last)) break
  }
  return match.slice(0, end)
}
