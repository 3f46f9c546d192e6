// A model as typed on the command line: paths are made absolute before they reach the daemon, whose
// folder is another one.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

export function modelArgument(text: string): string {
  const looksLikePath =
    text.startsWith('.') || text.startsWith('/') || text.startsWith('~') || text.endsWith('.gguf')
  return looksLikePath || existsSync(text) ? resolve(text) : text
}
