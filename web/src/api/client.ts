// The one place where the page talks to its server.
import type { ClusterView } from '../../../src/wire/cluster-view.ts'
import { type ChatEvent, readChatStream } from './chat-events.ts'
import { RequestFailed, isKeyMissing, refusalOf } from './failure.ts'

export interface ModelEntry {
  readonly id: string
  /** Somebody wants it served; whether it is ready, only the cluster view says. */
  readonly loaded: boolean
  readonly contextTokens: number | null
}

export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface ChatQuestion {
  readonly model: string
  readonly messages: readonly ChatMessage[]
}

export interface Api {
  models(): Promise<readonly ModelEntry[]>
  clusterView(): Promise<ClusterView>
  /** Reports what happens until the answer ends; rejects only with RequestFailed, or when aborted. */
  ask(
    question: ChatQuestion,
    report: (event: ChatEvent) => void,
    signal: AbortSignal,
  ): Promise<void>
}

export interface ApiParts {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>
  readonly key: () => string | null
  readonly onKeyRefused: (keySent: string | null) => void
}

const replyMsMax = 10_000
/** The gateway breaks every silence within eight seconds; one this long is a dead connection. */
const silenceMsMax = 60_000

export function createApi(parts: ApiParts): Api {
  const request = async (path: string, init: RequestInit): Promise<Response> => {
    const key = parts.key()
    const headers = new Headers(init.headers)
    if (key !== null) headers.set('authorization', `Bearer ${key}`)
    const response = await parts.fetch(path, { ...init, headers }).catch((error: unknown) => {
      if (isAborted(init.signal)) throw error
      throw new RequestFailed({ kind: 'unreachable' })
    })
    if (response.ok) return response
    const body: unknown = await response.json().catch(() => null)
    const retryAfter = response.headers.get('retry-after')
    const failure = refusalOf(body, { status: response.status, retryAfter })
    if (isKeyMissing(failure)) parts.onKeyRefused(key)
    throw new RequestFailed(failure)
  }
  const getJson = async (path: string): Promise<unknown> => {
    try {
      const response = await request(path, { signal: AbortSignal.timeout(replyMsMax) })
      return await response.json()
    } catch (error) {
      if (error instanceof RequestFailed) throw error
      const isSyntax = error instanceof SyntaxError
      throw new RequestFailed({ kind: isSyntax ? 'unreadable' : 'unreachable' })
    }
  }
  return {
    models: async () => readModels(await getJson('/v1/models')),
    clusterView: async () => (await getJson('/cluster/view')) as ClusterView,
    ask: (question, report, signal) => streamAnswer(request, { question, report, signal }),
  }
}

async function streamAnswer(
  request: (path: string, init: RequestInit) => Promise<Response>,
  {
    question,
    report,
    signal,
  }: { question: ChatQuestion; report: (event: ChatEvent) => void; signal: AbortSignal },
): Promise<void> {
  const silence = new AbortController()
  let alarm: ReturnType<typeof setTimeout> | undefined
  const heard = (): void => {
    clearTimeout(alarm)
    alarm = setTimeout(() => silence.abort(), silenceMsMax)
  }
  const reader = readChatStream((event) => {
    report(event)
    // Nothing more is wanted of a stream that has failed.
    if (event.kind === 'answer-failed') silence.abort()
  })
  try {
    heard()
    const response = await request('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...question, stream: true, stream_options: { include_usage: true } }),
      signal: AbortSignal.any([signal, silence.signal]),
    })
    // A reader, because Safari learned to iterate over streams only lately.
    const body = response.body?.getReader()
    const decoder = new TextDecoder()
    for (let part = await body?.read(); part?.done === false; part = await body?.read()) {
      heard()
      reader.feed(decoder.decode(part.value, { stream: true }))
    }
    reader.end()
  } catch (error) {
    if (error instanceof RequestFailed || signal.aborted) throw error
    reader.end()
  } finally {
    clearTimeout(alarm)
  }
}

function readModels(body: unknown): readonly ModelEntry[] {
  const data = (body as { data?: unknown } | null)?.data
  if (!Array.isArray(data)) throw new RequestFailed({ kind: 'unreadable' })
  return data.flatMap((entry: { id?: unknown; loaded?: unknown; context_length?: unknown }) =>
    typeof entry.id === 'string'
      ? [
          {
            id: entry.id,
            loaded: entry.loaded === true,
            contextTokens: typeof entry.context_length === 'number' ? entry.context_length : null,
          },
        ]
      : [],
  )
}

function isAborted(signal: AbortSignal | null | undefined): boolean {
  return signal?.aborted === true
}
