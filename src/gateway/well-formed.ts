// Text that can be written as UTF-8: JSON may carry half of a surrogate pair, a tokenizer may not.

export function loneSurrogate(text: string): boolean {
  return !text.isWellFormed()
}
