// Reads a request body as JSON within limits, whatever content type a hurried person sent.
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { limits } from '../core/limits.ts'
import { formatBytes } from '../core/units.ts'
import { ApiError } from './api-error.ts'

export async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const text = await readText(incoming)
  if (text.trim() === '') {
    throw new ApiError({ status: 400, message: 'The request has no body; send a JSON object' })
  }
  refuseDepth(text)
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ApiError({ status: 400, message: `The body is not valid JSON: ${reason}` })
  }
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const tooLarge = new ApiError({
    status: 413,
    message: `The body is larger than ${formatBytes(limits.requestBodyBytesMax)}`,
  })
  if (Number(incoming.headers['content-length'] ?? 0) > limits.requestBodyBytesMax) throw tooLarge
  const encoding = incoming.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new ApiError({
      status: 415,
      message: `Bodies with content-encoding ${encoding} are not accepted; send plain JSON`,
    })
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming) {
    bytes += (chunk as Buffer).length
    if (bytes > limits.requestBodyBytesMax) throw tooLarge
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const depthMax = 200

/** Nesting beyond any honest request would only exhaust the stack of whoever walks it. */
function refuseDepth(text: string): void {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const char = text[index]
    if (inString) {
      if (char === '\\') index += 1
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === '{' || char === '[') {
      depth += 1
      if (depth > depthMax) {
        throw new ApiError({
          status: 400,
          message: `The body is nested deeper than ${depthMax} levels`,
        })
      }
    } else if (char === '}' || char === ']') depth -= 1
  }
}

/** Checks a body, or a part of one, against a schema; the first problem is told with its place. */
export function parseBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  within = '',
): z.infer<Schema> {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const param = [within, ...(issue?.path ?? [])].filter((step) => step !== '').join('.')
  const place = param === '' ? 'the body' : `"${param.slice(0, 200)}"`
  throw new ApiError({
    status: 400,
    message: `Invalid value for ${place}: ${issue?.message ?? 'not understood'}`,
    param: param === '' ? null : param,
  })
}
