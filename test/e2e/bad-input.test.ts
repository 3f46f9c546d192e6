// Whatever is sent, the answer is a clear 4xx in OpenAI's shape, and the daemon and its rank live on.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type TestDaemon, startDaemon } from './daemon.ts'

const model = 'scripted-tiny'
const chat = (fields: object): string =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 4, ...fields })

interface Case {
  readonly name: string
  readonly body: string | Buffer
  readonly status: number
  readonly message: RegExp
  readonly headers?: Record<string, string>
}

const cases: readonly Case[] = [
  { name: 'an empty body', body: '', status: 400, message: /no body/ },
  {
    name: 'JSON that is cut off',
    body: '{"model": "x", "mess',
    status: 400,
    message: /not valid JSON/,
  },
  {
    name: 'JSON nested 100,000 deep',
    body: '['.repeat(100_000),
    status: 400,
    message: /nested deeper/,
  },
  { name: 'a number instead of an object', body: '7', status: 400, message: /Invalid value/ },
  { name: 'no model', body: JSON.stringify({ messages: [] }), status: 400, message: /"model"/ },
  {
    name: 'a model that does not exist',
    body: chat({ model: 'nothing' }),
    status: 404,
    message: /there are: .*scripted-tiny/,
  },
  {
    name: 'a path as model',
    body: chat({ model: '../../etc/passwd' }),
    status: 404,
    message: /does not exist/,
  },
  {
    name: 'an encoded path as model',
    body: chat({ model: '%2e%2e%2fetc' }),
    status: 404,
    message: /does not exist/,
  },
  {
    name: 'an absolute path as model',
    body: chat({ model: '/etc' }),
    status: 404,
    message: /does not exist/,
  },
  {
    name: 'a model name of 10 kB',
    body: chat({ model: 'x'.repeat(10_000) }),
    status: 400,
    message: /"model"/,
  },
  {
    name: 'no messages',
    body: chat({ messages: [] }),
    status: 400,
    message: /at least one message/,
  },
  {
    name: 'messages that are no list',
    body: chat({ messages: 'hi' }),
    status: 400,
    message: /"messages"/,
  },
  {
    name: 'an unknown role',
    body: chat({ messages: [{ role: 'wizard', content: 'hi' }] }),
    status: 400,
    message: /must be one of system/,
  },
  {
    name: 'content of a wrong type',
    body: chat({ messages: [{ role: 'user', content: 7 }] }),
    status: 400,
    message: /messages\.0\.content/,
  },
  {
    name: 'half of a surrogate pair',
    body: String.raw`{"model":"scripted-tiny","messages":[{"role":"user","content":"\ud800"}]}`,
    status: 400,
    message: /surrogate/,
  },
  {
    name: 'an image for a model without eyes',
    body: chat({
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }],
        },
      ],
    }),
    status: 400,
    message: /reads text only/,
  },
  {
    name: 'max_tokens 0',
    body: chat({ max_tokens: 0 }),
    status: 400,
    message: /max_tokens.*at least 1/,
  },
  { name: 'max_tokens −1', body: chat({ max_tokens: -1 }), status: 400, message: /at least 1/ },
  { name: 'max_tokens 1e18', body: chat({ max_tokens: 1e18 }), status: 400, message: /max_tokens/ },
  { name: 'max_tokens 1.5', body: chat({ max_tokens: 1.5 }), status: 400, message: /whole number/ },
  {
    name: 'max_tokens "10"',
    body: chat({ max_tokens: '10' }),
    status: 400,
    message: /whole number/,
  },
  {
    name: 'a temperature that is not a number',
    body: `{"model":"${model}","messages":[{"role":"user","content":"x"}],"temperature":NaN}`,
    status: 400,
    message: /not valid JSON/,
  },
  {
    name: 'a negative temperature',
    body: chat({ temperature: -1 }),
    status: 400,
    message: /temperature/,
  },
  {
    name: 'temperature 1e308',
    body: chat({ temperature: 1e308 }),
    status: 400,
    message: /temperature/,
  },
  { name: 'top_p 2', body: chat({ top_p: 2 }), status: 400, message: /top_p/ },
  { name: 'top_p 0', body: chat({ top_p: 0 }), status: 400, message: /top_p/ },
  {
    name: 'a bias for token 1e9',
    body: chat({ logit_bias: { 999999999: 1 } }),
    status: 400,
    message: /vocabulary/,
  },
  {
    name: 'a bias with a word as key',
    body: chat({ logit_bias: { hello: 1 } }),
    status: 400,
    message: /logit_bias/,
  },
  {
    name: '10,000 stop strings',
    body: chat({ stop: Array.from({ length: 10_000 }, () => 'x') }),
    status: 400,
    message: /stop/,
  },
  {
    name: 'top_logprobs −5',
    body: chat({ logprobs: true, top_logprobs: -5 }),
    status: 400,
    message: /top_logprobs/,
  },
  { name: 'n of 1e9', body: chat({ n: 1e9 }), status: 400, message: /\bn\b/ },
  {
    name: 'a prompt longer than the context',
    body: chat({ messages: [{ role: 'user', content: 'word '.repeat(20_000) }] }),
    status: 400,
    message: /context/,
  },
  {
    name: 'a tool without a name',
    body: chat({ tools: [{ type: 'function', function: {} }] }),
    status: 400,
    message: /needs a name/,
  },
  {
    name: 'two tools of one name',
    body: chat({ tools: [1, 2].map(() => ({ type: 'function', function: { name: 'a' } })) }),
    status: 400,
    message: /Two tools/,
  },
  {
    name: 'a choice of a tool that is not offered',
    body: chat({ tool_choice: { type: 'function', function: { name: 'a' } } }),
    status: 400,
    message: /no tool "a"/,
  },
  {
    name: 'a tool call id that is there twice',
    body: chat({
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [1, 2].map(() => ({ id: 'c1', function: { name: 'f', arguments: '{}' } })),
        },
      ],
    }),
    status: 400,
    message: /"c1" is there twice/,
  },
  {
    name: 'a schema that refers to itself and nothing else',
    body: chat({
      response_format: {
        type: 'json_schema',
        json_schema: { schema: { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } } },
      },
    }),
    status: 400,
    message: /runs in a circle/,
  },
  {
    name: 'a schema that leaves itself',
    body: chat({
      response_format: {
        type: 'json_schema',
        json_schema: { schema: { $ref: 'http://169.254.169.254/x' } },
      },
    }),
    status: 400,
    message: /leaves the schema/,
  },
  ...[
    'file:///etc/passwd',
    'http://169.254.169.254/a.png',
    'http://[::1]/a.png',
    'data:image/png;base64,aaaa',
  ].map((url): Case => ({
    name: `an image at ${url}`,
    body: chat({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    }),
    status: 400,
    message: /reads text only/,
  })),
  {
    name: 'a compressed body',
    body: gzipSync('x'.repeat(1000)),
    status: 415,
    message: /content-encoding/,
    headers: { 'content-encoding': 'gzip' },
  },
  {
    name: 'a page of another origin',
    body: chat({}),
    status: 403,
    message: /may not use/,
    headers: { origin: 'https://evil.example' },
  },
]

describe('bad input to the chat API', () => {
  let daemon: TestDaemon
  let folder = ''

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bushel-script-'))
    mkdirSync(join(folder, model))
    writeFileSync(
      join(folder, model, 'script.json'),
      JSON.stringify({ contextTokens: 4096, tokensPerSecond: 500 }),
    )
    daemon = await startDaemon({ args: ['--model', join(folder, model)] })
  })

  after(async () => {
    await daemon.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const post = (body: string | Buffer, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${daemon.url}/v1/chat/completions`, {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers: { 'content-type': 'application/json', ...headers },
    })

  for (const { name, body, status, message, headers } of cases) {
    for (const stream of [false, true]) {
      test(`${name}${stream ? ', streaming,' : ''} gets ${status} with a message`, async () => {
        const sent =
          stream && typeof body === 'string' && body.startsWith('{"model"')
            ? body.replace('{', '{"stream":true,')
            : body
        const response = await post(sent, headers)
        const answer = (await response.json()) as { error?: { message?: string; type?: string } }
        assert.equal(response.status, status, JSON.stringify(answer))
        assert.match(answer.error?.message ?? '', message)
        assert.equal(typeof answer.error?.type, 'string')
      })
    }
  }

  test('a body of 50 MB gets 413', async () => {
    const response = await post(chat({ filler: 'x'.repeat(50_000_000) })).catch(() => null)
    assert.ok(response === null || response.status === 413)
  })

  test('a host name that is not ours is refused: a rebound DNS name cannot reach in', async () => {
    const status = await new Promise<string>((done) => {
      const socket = connect({ host: '127.0.0.1', port: Number(new URL(daemon.url).port) })
      socket.on('data', (chunk: Buffer) => {
        done(chunk.toString().split('\r\n')[0] ?? '')
        socket.destroy()
      })
      socket.write('GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n')
    })
    assert.match(status, /403/)
  })

  test('unknown routes and wrong methods are told what there is', async () => {
    const response = await fetch(`${daemon.url}/v1/nothing`)
    assert.equal(response.status, 404)
    assert.match(
      ((await response.json()) as { error: { message: string } }).error.message,
      /openapi\.json/,
    )
    const wrong = await fetch(`${daemon.url}/v1/chat/completions`)
    assert.equal(wrong.status, 405)
    assert.equal(wrong.headers.get('allow'), 'POST')
    assert.match(
      ((await wrong.json()) as { error: { message: string } }).error.message,
      /takes POST, not GET/,
    )
  })

  test('each protocol refuses in its own shape', async () => {
    const send = async (path: string, body: object, headers: Record<string, string> = {}) => {
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await fetch(`${daemon.url}${path}`, init)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const messages = [{ role: 'user', content: 'hi' }]
    const version = await send(
      '/v1/messages',
      { model, messages, max_tokens: 4 },
      { 'anthropic-version': 'soon' },
    )
    assert.equal(version.status, 400)
    assert.equal(version.body['type'], 'error')
    const unknown = await send('/v1/messages', { model: 'claude-9', messages, max_tokens: 4 })
    assert.deepEqual(
      [unknown.status, (unknown.body['error'] as { type: string }).type],
      [404, 'not_found_error'],
    )
    const ollama = await send('/api/chat', { model: 'nothing', messages })
    assert.deepEqual([ollama.status, typeof ollama.body['error']], [404, 'string'])
    for (const name of ['http://evil.example/x', '../../etc', 'a/b/c', 'hf.co/../x'])
      assert.equal((await send('/api/pull', { model: name })).status, 400, name)
    const suffix = await send('/v1/completions', { model, prompt: 'a', suffix: 'b' })
    assert.equal(suffix.status, 400)
    const kept = await send('/v1/responses', {
      model,
      input: 'a',
      previous_response_id: 'resp_none',
    })
    assert.equal((kept.body['error'] as { code: string }).code, 'previous_response_not_found')
    const embedded = await send('/v1/embeddings', { model, input: 'a' })
    assert.match((embedded.body['error'] as { message: string }).message, /not an embedding model/)
  })

  test('unknown fields, null fields, the developer role and content parts are accepted', async () => {
    const response = await post(
      chat({
        messages: [
          { role: 'developer', content: 'be brief' },
          { role: 'user', content: [{ type: 'text', text: 'hello' }] },
        ],
        max_tokens: null,
        max_completion_tokens: 3,
        something_new: { deep: [1] },
        temperature: null,
      }),
    )
    assert.equal(response.status, 200)
    const answer = (await response.json()) as { usage: { completion_tokens: number } }
    assert.equal(answer.usage.completion_tokens, 3)
  })

  test('after all of this the daemon and its rank are the same and answer', async () => {
    assert.equal((await fetch(`${daemon.url}/readyz`)).status, 200)
    assert.equal((await post(chat({}))).status, 200)
    assert.equal(daemon.processes().length, 2)
  })
})
