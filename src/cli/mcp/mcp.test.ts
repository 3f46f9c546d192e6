// The MCP server as an agent meets it: the SDK's own client, over stdio and over HTTP.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { openKnowledgeBase } from '../../kb/open.ts'
import { allTools } from './tools.ts'
import { type HttpServing, serveHttp } from './serve-http.ts'
import { defineTool } from './tool.ts'

const root = join(import.meta.dirname, '../../..')
const home = mkdtempSync(join(tmpdir(), 'bushel-mcp-'))
after(() => rmSync(home, { recursive: true, force: true }))
/** A port on which nothing listens: what a machine without a daemon looks like. */
const env = { BUSHEL_HOME: home, BUSHEL_PORT: '9' }
const program = join(root, 'src/cli/main.ts')

interface Answer {
  text: string
  data: Record<string, unknown>
  isError: boolean
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Answer> {
  const result = await client.callTool({ name, arguments: args })
  const content = result.content as { type: string; text: string }[]
  return {
    text: content.map((part) => part.text).join('\n'),
    data: (result.structuredContent ?? {}) as Record<string, unknown>,
    isError: result.isError === true,
  }
}

const findingIds = (answer: Answer): number[] =>
  (answer.data['findings'] as { id: number }[]).map((finding) => finding.id)

function suite(name: string, connect: () => Transport): void {
  describe(`the MCP server over ${name}`, () => {
    let client: Client
    before(async () => {
      client = new Client({ name: 'test', version: '1' })
      await client.connect(connect())
    })
    after(() => client.close())

    test('listTools() offers the knowledge base and the cluster', async () => {
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map((tool) => tool.name),
        ['kb_search', 'kb_detail', 'kb_skill', 'cluster_status', 'plan_model', 'doctor'],
      )
      for (const tool of tools) assert.ok((tool.description ?? '').length > 40, tool.name)
    })

    test('plan_model plans, and says what it does not know', async () => {
      const asked = { model: 'qwen3-235b-a22b', cluster: '4xM3Ultra-512,tb5-mesh' }
      const planned = JSON.stringify(await call(client, 'plan_model', asked))
      assert.match(planned, /tok\/s|tokensPerSecond/)
      const unknown = await client.callTool({
        name: 'plan_model',
        arguments: { ...asked, cluster: '3xAbacus' },
      })
      assert.equal(unknown.isError, true)
    })

    test('doctor looks at this machine when no cluster runs', async () => {
      const looked = JSON.stringify(await call(client, 'doctor', { all: true }))
      assert.match(looked, /diagnosis|findings/)
    })

    test('kb_search finds, filters and forgives', async () => {
      const found = await call(client, 'kb_search', { query: 'how do I enable rdma' })
      assert.ok(findingIds(found).includes(413))
      assert.match(found.text, /kb#413 {2}corrected/)
      const filtered = await call(client, 'kb_search', {
        query: 'thunderblot',
        status: ['disputed'],
        limit: 3,
      })
      assert.deepEqual(filtered.data['readAs'], { thunderblot: 'thunderbolt' })
      assert.ok(findingIds(filtered).length > 0 && findingIds(filtered).length <= 3)
      const nothing = await call(client, 'kb_search', { query: '"(*^ 🚀' })
      assert.deepEqual(findingIds(nothing), [])
      assert.match(nothing.text, /Nothing found/)
    })

    test('kb_detail shows relations both ways and refuses unknown ids', async () => {
      const detail = await call(client, 'kb_detail', { id: 416 })
      const relatedBy = detail.data['relatedBy'] as { contradicts: { id: number }[] }
      assert.ok(relatedBy.contradicts.some((other) => other.id === 2034))
      const unknown = await call(client, 'kb_detail', { id: 99_999 })
      assert.equal(unknown.isError, true)
      assert.match(unknown.text, /There is no finding 99999; kb_search finds/)
    })

    test('kb_detail refuses an id that is none', async () => {
      const wrong = await call(client, 'kb_detail', { id: 'many' })
      assert.equal(wrong.isError, true)
      assert.doesNotMatch(wrong.text, /\bat .*\.ts:\d+/)
    })

    test('kb_skill lists topics and gives one', async () => {
      const list = await call(client, 'kb_skill')
      assert.match(list.text, /gpu-distributed: /)
      const topic = await call(client, 'kb_skill', { topic: 'jaccl' })
      assert.match(topic.text, /What to know/)
      assert.ok((topic.data['questions'] as unknown[]).length > 2)
      const unknown = await call(client, 'kb_skill', { topic: 'cooking' })
      assert.equal(unknown.isError, true)
      assert.match(unknown.text, /There is no topic "cooking"; there are .*jaccl/)
    })

    test('cluster_status says that nothing runs', async () => {
      const status = await call(client, 'cluster_status')
      assert.equal(status.data['running'], false)
      assert.match(status.text, /Bushel is not running on this machine .*bushel up/)
    })

    test('resources are listed and read', async () => {
      const { resources } = await client.listResources()
      const uris = resources.map((resource) => resource.uri)
      for (const uri of ['kb://finding/306', 'kb://topic/exo', 'kb://conflicts'])
        assert.ok(uris.includes(uri), uri)
      const read = async (uri: string): Promise<string> => {
        const { contents } = await client.readResource({ uri })
        return String((contents[0] as { text?: string }).text)
      }
      assert.match(await read('kb://finding/306'), /^kb#306 /)
      assert.match(await read('kb://topic/exo'), /Pitfalls/)
      assert.match(await read('kb://conflicts'), /Use: Leave it unset/)
      await assert.rejects(read('kb://finding/99999'), /There is no finding "99999"/)
      await assert.rejects(read('kb://topic/none'), /There is no topic "none"/)
    })
  })
}

suite(
  'stdio',
  () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [program, 'mcp'],
      env: { ...env, PATH: process.env['PATH'] ?? '' },
      stderr: 'ignore',
    }),
)

const kb = await openKnowledgeBase({ dataDir: join(root, 'data/kb'), cacheDir: null })
const parts = { kb, tools: allTools(kb, { env, programDir: root }), version: '0' }
const serving: HttpServing = await serveHttp(parts, 0)
after(async () => {
  await serving.close()
  kb.close()
})

suite('HTTP', () => new StreamableHTTPClientTransport(new URL(serving.url)))

const post = (headers: Record<string, string>, body: string): Promise<Response> =>
  fetch(serving.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
  })

test('serveHttp() turns away web pages, sessions, wrong paths and what is too large', async () => {
  assert.equal((await post({ origin: 'https://evil.example' }, '{}')).status, 403)
  assert.equal((await post({ origin: 'http://localhost:3000' }, '{}')).status, 400)
  assert.equal((await fetch(serving.url)).status, 405)
  assert.equal((await fetch(new URL('/', serving.url))).status, 404)
  assert.equal((await post({}, 'x'.repeat(300 * 1024))).status, 413)
  const broken = await post({}, '{"jsonrpc":')
  assert.equal(broken.status, 400)
  assert.doesNotMatch(await broken.text(), /\.ts:\d+/)
})

test('serveHttp() refuses a name that merely points to this machine', async () => {
  const { request } = await import('node:http')
  const { port } = new URL(serving.url)
  const asked = request({
    host: '127.0.0.1',
    port,
    path: '/mcp',
    method: 'POST',
    headers: { host: `rebound.example:${port}`, 'content-type': 'application/json' },
  })
  asked.end('{}')
  const [reply] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
  reply.resume()
  assert.equal(reply.statusCode, 403)
})

test('serveHttp() says that a port is taken', async () => {
  const port = Number(new URL(serving.url).port)
  await assert.rejects(serveHttp(parts, port), /Port \d+ is taken; choose another/)
})

test('cluster_status passes on what the daemon shows, or why it does not', async () => {
  const view = { machines: [{ id: 'm1', state: 'alive' }] }
  const daemon: Server = createServer((request, response) => {
    const shown =
      request.url === '/cluster/view' && request.headers.authorization === 'Bearer right'
    response.writeHead(shown ? 200 : 401, { 'content-type': 'application/json' })
    response.end(JSON.stringify(shown ? view : {}))
  })
  await once(daemon.listen(0, '127.0.0.1'), 'listening')
  const { port } = daemon.address() as AddressInfo
  const status = async (key: string): Promise<{ text: string; data: object } | undefined> =>
    allTools(kb, {
      env: { ...env, BUSHEL_PORT: String(port), BUSHEL_API_KEY: key },
      programDir: root,
    })
      .find((tool) => tool.name === 'cluster_status')
      ?.run({})
  assert.deepEqual((await status('right'))?.data, { running: true, view })
  const refused = await status('wrong')
  assert.deepEqual(refused?.data, { running: true, refused: 401 })
  assert.match(refused?.text ?? '', /does not show the cluster \(HTTP 401\)\. Set BUSHEL_API_KEY/)
  daemon.close()
})

test('a tool of somebody else joins the list and is called with checked arguments', async () => {
  const { z } = await import('zod')
  const double = defineTool({
    name: 'double',
    title: 'Double',
    description: 'doubles a number',
    input: { value: z.number() },
    run: ({ value }) => ({ text: String(value * 2), data: { value: value * 2 } }),
  })
  const own = await serveHttp({ ...parts, tools: [...parts.tools, double] }, 0)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(own.url)))
  assert.equal((await call(client, 'double', { value: 21 })).text, '42')
  assert.equal((await call(client, 'double', { value: 'x' })).isError, true)
  await client.close()
  await own.close()
})

test('bushel mcp answers everything it was asked before the agent hung up, then ends', async () => {
  const child = spawn(process.execPath, [program, 'mcp'], {
    env: { ...env, PATH: process.env['PATH'] ?? '' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const messages = [
    {
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'pipe', version: '1' },
      },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'cluster_status', arguments: {} } },
  ]
  child.stdin.end(messages.map((one) => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join(''))
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  assert.equal(code, 0)
  const ids = out
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: number }).id)
  assert.deepEqual(new Set(ids), new Set([1, 2]))
})

test('bushel mcp --http serves until it is told to stop', async () => {
  const child = spawn(process.execPath, [program, 'mcp', '--http', '0', '--json'], {
    env: { ...env, PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let out = ''
  const line = new Promise<string>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (out.includes('}')) resolve(out)
    })
  })
  const { url } = JSON.parse(await line) as { url: string }
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  assert.ok(findingIds(await call(client, 'kb_search', { query: 'jaccl' })).length > 0)
  await client.close()
  child.kill('SIGTERM')
  const [code] = (await once(child, 'exit')) as [number]
  assert.equal(code, 0)
})
