// XML property lists, as plutil and powermetrics print them. Small on purpose: six kinds of value, and
// a document that breaks off is refused whole, since half a sample is not a sample.
import { type Fact, known, unknown } from '../../core/machine-facts/fact.ts'

export type PlistValue =
  | string
  | number
  | boolean
  | readonly PlistValue[]
  | ReadonlyMap<string, PlistValue>

const depthMax = 64

export function parsePlist(text: string): Fact<PlistValue> {
  const start = /<plist\b[^>]*>/.exec(text)
  if (start === null || !/<\/plist>\s*$/.test(text))
    return unknown('not-understood', 'the property list is not whole')
  const reader = new PlistReader(text, start.index + start[0].length)
  try {
    return known(reader.readValue(0))
  } catch (error) {
    if (error instanceof PlistError) return unknown('not-understood', error.message)
    throw error
  }
}

class PlistError extends Error {
  override readonly name = 'PlistError'
}

class PlistReader {
  readonly #text: string
  readonly #tag = /\s*<(\/?)([a-z]+)(\/?)>/y

  constructor(text: string, start: number) {
    this.#text = text
    this.#tag.lastIndex = start
  }

  readValue(depth: number): PlistValue {
    const tag = this.#nextTag()
    if (tag.closing) throw new PlistError(`unexpected </${tag.name}> in the property list`)
    return this.#readAfter(tag, depth)
  }

  #readAfter(tag: Tag, depth: number): PlistValue {
    if (depth > depthMax) throw new PlistError('the property list is nested too deeply')
    switch (tag.name) {
      case 'true':
      case 'false':
        return tag.name === 'true'
      case 'dict':
        return tag.empty ? new Map() : this.#readDictionary(depth)
      case 'array':
        return tag.empty ? [] : this.#readArray(depth)
      case 'string':
      case 'date':
      case 'data':
        return tag.empty ? '' : unescape(this.#readText(tag.name))
      case 'integer':
      case 'real':
        return this.#readNumber(tag.name)
      default:
        throw new PlistError(`<${tag.name}> in the property list is new to Bushel`)
    }
  }

  #readDictionary(depth: number): ReadonlyMap<string, PlistValue> {
    const entries = new Map<string, PlistValue>()
    for (;;) {
      const tag = this.#nextTag()
      if (tag.closing && tag.name === 'dict') return entries
      if (tag.closing || tag.name !== 'key')
        throw new PlistError('a dictionary in the property list has a value without a key')
      const key = unescape(this.#readText('key'))
      entries.set(key, this.readValue(depth + 1))
    }
  }

  #readArray(depth: number): readonly PlistValue[] {
    const values: PlistValue[] = []
    for (;;) {
      const tag = this.#nextTag()
      if (tag.closing && tag.name === 'array') return values
      if (tag.closing) throw new PlistError(`unexpected </${tag.name}> in the property list`)
      values.push(this.#readAfter(tag, depth + 1))
    }
  }

  #readNumber(tag: string): number {
    const text = this.#readText(tag).trim()
    const value = Number(text)
    if (text === '' || !Number.isFinite(value))
      throw new PlistError(`"${text.slice(0, 40)}" in the property list is not a number`)
    return value
  }

  #readText(tag: string): string {
    const from = this.#tag.lastIndex
    const to = this.#text.indexOf(`</${tag}>`, from)
    if (to === -1) throw new PlistError('the property list breaks off')
    this.#tag.lastIndex = to + tag.length + 3
    return this.#text.slice(from, to)
  }

  #nextTag(): Tag {
    const match = this.#tag.exec(this.#text)
    if (match === null) throw new PlistError('the property list breaks off')
    return { closing: match[1] === '/', name: match[2] ?? '', empty: match[3] === '/' }
  }
}

interface Tag {
  readonly closing: boolean
  readonly name: string
  readonly empty: boolean
}

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}

function unescape(text: string): string {
  return text.replaceAll(/&(?:lt|gt|quot|apos|amp);/g, (entity) => entities[entity] ?? entity)
}
