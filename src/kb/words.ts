// How text falls into words, for questions and for findings alike. The full-text index has its own
// tokenizer; a word from here is handed to it as a quoted phrase, so nothing a person types is syntax.

const wordShape = /[\p{L}\p{N}]+(?:[._'’#-][\p{L}\p{N}]+)*/gu

/** What joins the parts of such a name. */
export const joiners = /[._'’#-]/

/** The words of a text in lower case, names such as all_sum or 26.2 in one piece. */
export function wordsIn(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().match(wordShape) ?? []
}

/** A word as the full-text index wants it: quoted, so that it is never an operator. */
export function phraseOf(word: string): string {
  return `"${word.replaceAll('"', '""')}"`
}
