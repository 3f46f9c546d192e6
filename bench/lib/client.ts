// A client that only times: when each token arrives at the other end of an OpenAI-compatible server.
import { request } from 'node:http'

export interface TimedAnswer {
  /** Seconds from the request to each content chunk. */
  readonly times: readonly number[]
  readonly text: string
}

export interface TimedAsk {
  readonly url: string
  readonly model: string
  readonly prompt: string
  readonly tokens: number
  /** Fields that only some servers understand, such as ignore_eos. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** Prompts that were read before are remembered for each key: a new one finds nothing. */
  readonly key?: string
}

export function timedAsk({
  url,
  model,
  prompt,
  tokens,
  extra,
  key,
}: TimedAsk): Promise<TimedAnswer> {
  const body = JSON.stringify({
    model,
    messages: [{ role: 'user', content: prompt }],
    stream: true,
    temperature: 0,
    max_tokens: tokens,
    ...extra,
  })
  const target = new URL('/v1/chat/completions', url)
  return new Promise((done, fail) => {
    const started = performance.now()
    const times: number[] = []
    let text = ''
    let held = ''
    const outgoing = request(
      target,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
      },
      (response) => {
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          const now = (performance.now() - started) / 1000
          const lines = (held + piece).split('\n')
          held = lines.pop() ?? ''
          for (const line of lines) {
            const content = contentOf(line)
            if (content === '') continue
            times.push(now)
            text += content
          }
        })
        response.on('end', () => {
          if (response.statusCode === 200) done({ times, text })
          else fail(new Error(`${target.href} answered ${response.statusCode}: ${held}`))
        })
      },
    )
    outgoing.on('error', fail)
    outgoing.end(body)
  })
}

function contentOf(line: string): string {
  if (!line.startsWith('data: {')) return ''
  const chunk = JSON.parse(line.slice(6)) as { choices?: { delta?: { content?: string } }[] }
  return chunk.choices?.[0]?.delta?.content ?? ''
}
