// Questions about single characters, asked all over the Markdown reader. The empty string is a line's end.

/** How often the character at this place repeats. */
export function runLength(text: string, at: number): number {
  const char = text.charAt(at)
  let end = at + 1
  while (end < text.length && text.charAt(end) === char) end += 1
  return end - at
}

export function isPunctuation(char: string): boolean {
  return char !== '' && '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'.includes(char)
}

export function isBlank(char: string): boolean {
  return char === '' || /\s/.test(char)
}

export function isWord(char: string): boolean {
  return char !== '' && /[\p{L}\p{N}]/u.test(char)
}
