// Reasoning that a client carries for us: Codex sends a turn's thoughts back only in the field that
// providers fill with an encrypted text. Ours is the plain text in another spelling: it is the client's own.

const mark = 'bushel.1.'

export function sealReasoning(text: string): string {
  return mark + Buffer.from(text, 'utf8').toString('base64')
}

/** Null when the seal is another provider's. */
export function unsealReasoning(sealed: string): string | null {
  if (!sealed.startsWith(mark)) return null
  return Buffer.from(sealed.slice(mark.length), 'base64').toString('utf8').toWellFormed()
}
