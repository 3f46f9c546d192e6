// A plain client of the chat API for tests, through a host's forwarded socket.
import { request } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { Host } from './hosts.ts'

export interface Asked {
  readonly model: string
  readonly prompt: string
  readonly seed?: number
  readonly temperature?: number
  readonly tokensMax?: number
  readonly stop?: readonly string[]
  /** It writes until tokensMax. */
  readonly ignoreEos?: boolean
  /** With all the text so far. */
  readonly onText?: (text: string) => void
  /** Whole when false. */
  readonly stream?: boolean
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly text: string
  readonly finish: string | null
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
  readonly error: string | null
  /** When each piece of text came, in ms since the request. */
  readonly arrivalsMs: readonly number[]
  readonly comments: number
}

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string }
    readonly finish_reason?: string | null
  }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number }
  readonly error?: { readonly message: string }
}

interface WholeAnswer {
  readonly choices?: readonly {
    readonly message: { readonly content: string }
    readonly finish_reason: string
  }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number }
}

export function ask(host: Pick<Host, 'socketPath'>, asked: Asked): Promise<Answer> {
  return askAt({ socketPath: host.socketPath }, asked)
}

/** The longest that the reader of an answer waited between two pieces of it, in ms. */
export function longestPause({ arrivalsMs }: Answer): number {
  let longest = 0
  for (const [index, at] of arrivalsMs.entries())
    longest = Math.max(longest, at - (arrivalsMs[index - 1] ?? at))
  return longest
}

export function askUrl(url: string, asked: Asked): Promise<Answer> {
  const { hostname, port } = new URL(url)
  return askAt({ host: hostname, port }, asked)
}

function askAt(
  where: { socketPath: string } | { host: string; port: string },
  asked: Asked,
): Promise<Answer> {
  const { model, prompt, seed, temperature = 1, tokensMax, stop, stream = true } = asked
  const body = JSON.stringify({
    model,
    messages: [{ role: 'user', content: prompt }],
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    temperature,
    ...(seed === undefined ? {} : { seed }),
    ...(tokensMax === undefined ? {} : { max_tokens: tokensMax }),
    ...(stop === undefined ? {} : { stop }),
    ...(asked.ignoreEos === true ? { ignore_eos: true } : {}),
  })
  const startedMs = performance.now()
  return new Promise((done, fail) => {
    let text = ''
    let finish: string | null = null
    let usage: Answer['usage'] = null
    let error: string | null = null
    let comments = 0
    const arrivalsMs: number[] = []
    const parser = createParser({
      onComment: () => (comments += 1),
      onEvent({ data }) {
        if (data === '[DONE]') return
        const chunk = JSON.parse(data) as Chunk
        if (chunk.error !== undefined) error = chunk.error.message
        const piece = chunk.choices?.[0]?.delta?.content ?? ''
        text += piece
        if (piece !== '') {
          arrivalsMs.push(performance.now() - startedMs)
          asked.onText?.(text)
        }
        finish = chunk.choices?.[0]?.finish_reason ?? finish
        usage = chunk.usage ?? usage
      },
    })
    const outgoing = request(
      {
        ...where,
        path: '/v1/chat/completions',
        method: 'POST',
        headers: { host: 'localhost', 'content-type': 'application/json' },
        ...(asked.signal === undefined ? {} : { signal: asked.signal }),
      },
      (response) => {
        const decoder = new TextDecoder()
        let raw = ''
        response.on('data', (bytes: Buffer) => {
          const piece = decoder.decode(bytes, { stream: true })
          raw += piece
          if (response.statusCode === 200 && stream) parser.feed(piece)
        })
        response.on('end', () => {
          if (response.statusCode !== 200) error = raw
          else if (!stream) {
            const whole = JSON.parse(raw) as WholeAnswer
            text = whole.choices?.[0]?.message.content ?? ''
            finish = whole.choices?.[0]?.finish_reason ?? null
            usage = whole.usage ?? null
          }
          done({ text, finish, usage, error, arrivalsMs, comments })
        })
        response.on('error', fail)
      },
    )
    outgoing.on('error', fail)
    outgoing.end(body)
  })
}
