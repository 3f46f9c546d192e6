// Asks the model of the daemon on this machine, over the same API that everyone uses.
import { z } from 'zod'
import type { AskModel, ModelReply } from '../../kb/ask.ts'

/** A daemon on this machine answers at once or not at all; a model may need its time. */
const readyTimeoutMs = 2_000
const answerTimeoutMs = 180_000
/** Three statements of the form end well before. */
const answerTokensMax = 400
/** Small models circle without it; large ones do not mind. */
const repetitionPenalty = 1.1

const modelList = z.looseObject({
  data: z.array(z.looseObject({ id: z.string(), loaded: z.boolean().optional() })),
})
const completion = z.looseObject({
  model: z.string().optional(),
  choices: z
    .array(z.looseObject({ message: z.looseObject({ content: z.string().nullable() }) }))
    .min(1),
})

interface DaemonModelOptions {
  readonly url: string
  readonly model?: string | undefined
  readonly apiKey?: string | undefined
}

export function createDaemonModel(options: DaemonModelOptions): AskModel {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (options.apiKey !== undefined) headers['authorization'] = `Bearer ${options.apiKey}`
  const call = (path: string, timeoutMs: number, body?: unknown): Promise<Response> =>
    fetch(`${options.url}${path}`, {
      headers,
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
  const missing = (reason: string): ModelReply => ({ kind: 'model-missing', reason })

  return async (messages, schema) => {
    try {
      const ready = await call('/readyz', readyTimeoutMs)
      await ready.body?.cancel()
      if (!ready.ok) return missing('No model is loaded; load one with "bushel load MODEL".')
    } catch {
      return missing(`No Bushel daemon answers at ${options.url}; start one with "bushel up".`)
    }
    try {
      const model = options.model ?? (await chooseModel(await call('/v1/models', readyTimeoutMs)))
      if (model === null) return missing('The daemon lists no model; fetch one with "bushel pull".')
      const reply = await call('/v1/chat/completions', answerTimeoutMs, {
        model,
        messages,
        temperature: 0,
        max_tokens: answerTokensMax,
        repetition_penalty: repetitionPenalty,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', strict: true, schema },
        },
      })
      if (!reply.ok) return missing(`The model "${model}" refused: ${await reasonOf(reply)}.`)
      const parsed = completion.parse(await reply.json())
      const text = parsed.choices[0]?.message.content ?? ''
      return { kind: 'model-answered', text, model: parsed.model ?? model }
    } catch (error) {
      return missing(`The model gave no usable answer: ${messageOf(error)}.`)
    }
  }
}

/** A loaded one before the first of the list, which is the starter model. */
async function chooseModel(reply: Response): Promise<string | null> {
  const { data } = modelList.parse(await reply.json())
  return (data.find((model) => model.loaded === true) ?? data[0])?.id ?? null
}

async function reasonOf(reply: Response): Promise<string> {
  const text = (await reply.text()).slice(0, 500)
  const parsed = z
    .looseObject({ error: z.looseObject({ message: z.string() }) })
    .safeParse(parseJson(text))
  return parsed.success ? parsed.data.error.message.replace(/\.$/, '') : `HTTP ${reply.status}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function messageOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'it took too long'
  if (error instanceof z.ZodError) return 'its reply has an unknown form'
  return error instanceof Error ? error.message : String(error)
}
