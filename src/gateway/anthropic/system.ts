// The system prompt. Claude Code puts a line for its own accounting before it that changes with every
// request; left in, no two requests would begin alike and no cached prefix would ever be used.
import type { CountRequest } from './request.ts'

const billing = /^x-anthropic-billing-header:[^\n]*\n?/i

export function systemText(system: CountRequest['system']): string {
  if (system == null) return ''
  const blocks = typeof system === 'string' ? [system] : system.map(({ text }) => text)
  return blocks
    .map((text) => text.replace(billing, ''))
    .filter((text) => text.trim() !== '')
    .join('\n\n')
}
