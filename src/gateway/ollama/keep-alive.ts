// How long a model stays after its last use, as Ollama's clients say it.
import { z } from 'zod'
import { badField } from '../api-error.ts'

export const keepAliveField = z.union([z.string().max(40), z.number()]).nullish()

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds; null for ever; undefined when the client says nothing. */
export function keepAliveMs(value: z.infer<typeof keepAliveField>): number | null | undefined {
  if (value == null || value === '') return undefined
  const ms = typeof value === 'number' ? value * 1000 : parseGoDuration(value)
  if (ms === null || !Number.isFinite(ms))
    throw badField('keep_alive', `"${value}" is no duration; send seconds or a text like "10m"`)
  return ms < 0 ? null : Math.min(Math.round(ms), Number.MAX_SAFE_INTEGER)
}

/** "1h30m", "-1", "5m0s", "300". */
function parseGoDuration(text: string): number | null {
  const match = /^(-?)((?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+|\d+(?:\.\d+)?)$/.exec(text.trim())
  if (match === null) return null
  const [, sign, body = ''] = match
  let ms = 0
  for (const [, amount, unit] of body.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)?/g))
    ms += Number(amount) * (unitMs[unit ?? 's'] ?? 1000)
  return sign === '-' ? -ms : ms
}
