// Text that can be written as UTF-8: JSON may carry half of a surrogate pair, a tokenizer may not.
import { badField } from './api-error.ts'

export function wellFormed(text: string, param: string): string {
  if (text.isWellFormed()) return text
  throw badField(param, 'The text holds half of a surrogate pair; send valid Unicode')
}
