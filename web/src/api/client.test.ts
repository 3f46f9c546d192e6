import assert from 'node:assert/strict'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { ChatEvent } from './chat-events.ts'
import { type Api, createApi } from './client.ts'
import { type Failure, RequestFailed } from './failure.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A real server, because how connections break is what these tests are about. */
async function apiOf(
  t: TestContext,
  handler: Handler,
): Promise<{ api: Api; refused: (string | null)[] }> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const refused: (string | null)[] = []
  const api = createApi({
    fetch: (path, init) => fetch(base + path, init),
    key: () => 'secret',
    onKeyRefused: (key) => refused.push(key),
  })
  return { api, refused }
}

async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  assert(error instanceof RequestFailed, `expected a RequestFailed, got ${String(error)}`)
  return error.failure
}

const question = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] } as const
const text = 'data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
const finish = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

test('createApi() sends the key and reads models with what they lack left open', async (t) => {
  let authorization: string | undefined
  const { api } = await apiOf(t, (request, response) => {
    authorization = request.headers.authorization
    response.end('{"data":[{"id":"a","loaded":true,"context_length":8192},{"id":"b"},{"no":"id"}]}')
  })
  assert.deepEqual(await api.models(), [
    { id: 'a', loaded: true, contextTokens: 8192 },
    { id: 'b', loaded: false, contextTokens: null },
  ])
  assert.equal(authorization, 'Bearer secret')
})

test('createApi() tells the key ring which key was refused', async (t) => {
  const { api, refused } = await apiOf(t, (_, response) => {
    response.statusCode = 401
    response.end('{"error":{"message":"This API key is not known here","code":"invalid_api_key"}}')
  })
  const failure = await failureOf(api.clusterView())
  assert.equal(failure.kind === 'refused' && failure.status, 401)
  assert.deepEqual(refused, ['secret'])
})

test('createApi() calls a server that hangs up unreachable, and one that talks HTML unreadable', async (t) => {
  const { api } = await apiOf(t, (request, response) => {
    if (request.url === '/v1/models') response.end('<html>')
    else request.socket.destroy()
  })
  assert.deepEqual(await failureOf(api.clusterView()), { kind: 'unreachable' })
  assert.deepEqual(await failureOf(api.models()), { kind: 'unreadable' })
})

test('Api.ask() asks for a stream with usage and reports its events', async (t) => {
  let body = ''
  const { api } = await apiOf(t, (request, response) => {
    request.on('data', (part: Buffer) => (body += part.toString()))
    request.on('end', () => response.end(text + finish))
  })
  const events: ChatEvent[] = []
  await api.ask(question, (event) => events.push(event), new AbortController().signal)
  assert.deepEqual(JSON.parse(body), {
    ...question,
    stream: true,
    stream_options: { include_usage: true },
  })
  assert.deepEqual(
    events.map((event) => event.kind),
    ['text-received', 'answer-finished'],
  )
})

test('Api.ask() keeps letters whole that the network cut in two', async (t) => {
  const bytes = Buffer.from(text.replace('Hello', 'Äpfel 🍎'))
  const { api } = await apiOf(t, (_, response) => {
    const parts = [...bytes].map((byte) => Buffer.from([byte]))
    const next = (): void => {
      const part = parts.shift()
      if (part === undefined) response.end(finish)
      else response.write(part, () => setImmediate(next))
    }
    next()
  })
  const events: ChatEvent[] = []
  await api.ask(question, (event) => events.push(event), new AbortController().signal)
  assert.deepEqual(events.at(0), { kind: 'text-received', text: 'Äpfel 🍎' })
})

test('Api.ask() reports a connection that dies in the middle as cut off, after what had arrived', async (t) => {
  const { api } = await apiOf(t, (request, response) => {
    response.write(text, () => setTimeout(() => request.socket.destroy(), 20))
  })
  const events: ChatEvent[] = []
  await api.ask(question, (event) => events.push(event), new AbortController().signal)
  assert.deepEqual(events, [
    { kind: 'text-received', text: 'Hello' },
    { kind: 'answer-failed', failure: { kind: 'cut-off' } },
  ])
})

test('Api.ask() ends the request when it is aborted', async (t) => {
  const gone = Promise.withResolvers<void>()
  const { api } = await apiOf(t, (_, response) => {
    response.on('close', () => gone.resolve())
    response.write(text)
  })
  const stop = new AbortController()
  const asked = api.ask(question, () => stop.abort(), stop.signal)
  await assert.rejects(asked, { name: 'AbortError' })
  await gone.promise
})
