// A client that wants to know how sure the model was of each token.
import { request } from 'node:http'
import type { Host } from './hosts.ts'

export interface Scored {
  readonly text: string
  readonly logprobs: readonly number[]
}

interface Completion {
  readonly choices?: readonly {
    readonly message: { readonly content: string }
    readonly logprobs: { readonly content: readonly { readonly logprob: number }[] } | null
  }[]
  readonly error?: { readonly message: string }
}

/** Greedy, whole, with logprobs. */
export function askScored(
  host: Pick<Host, 'socketPath'>,
  asked: { model: string; prompt: string; tokensMax: number },
): Promise<Scored> {
  const body = JSON.stringify({
    model: asked.model,
    messages: [{ role: 'user', content: asked.prompt }],
    temperature: 0,
    max_tokens: asked.tokensMax,
    logprobs: true,
  })
  return new Promise((done, fail) => {
    const outgoing = request(
      {
        socketPath: host.socketPath,
        path: '/v1/chat/completions',
        method: 'POST',
        headers: { host: 'localhost', 'content-type': 'application/json' },
      },
      (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => {
          const json = JSON.parse(text) as Completion
          const choice = json.choices?.[0]
          if (choice === undefined) fail(new Error(json.error?.message ?? text))
          else
            done({
              text: choice.message.content,
              logprobs: choice.logprobs?.content.map((entry) => entry.logprob) ?? [],
            })
        })
      },
    )
    outgoing.on('error', fail)
    outgoing.end(body)
  })
}
