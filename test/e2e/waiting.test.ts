// What clients meet when a model is not there yet, is busy, or goes away: loading on request, keep-alives,
// refusals that are worth a retry, idle unloading. Scripted models keep it quick.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI, { RateLimitError } from 'openai'
import { type TestDaemon, startDaemon } from './daemon.ts'

const root = resolve(import.meta.dirname, '..', '..')

describe('models that come and go', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-scripts-'))
  let daemon: TestDaemon

  const script = (path: string, fields: object): string => {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'script.json'), JSON.stringify(fields))
    return path
  }
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${daemon.url}${path}`, { method: 'POST', body: JSON.stringify(body) })
  const json = async <T>(response: Promise<Response>): Promise<T> =>
    (await (await response).json()) as T
  const loadedNames = async (): Promise<readonly string[]> => {
    const { models } = await json<{ models: { name: string }[] }>(fetch(`${daemon.url}/api/ps`))
    return models.map(({ name }) => name)
  }
  const cli = (...args: readonly string[]) => {
    const env = { ...process.env, BUSHEL_HOME: daemon.home, BUSHEL_DISCOVERY: 'off', HOME: folder }
    const run = spawnSync(join(root, 'bushel'), args, { env, encoding: 'utf8', timeout: 60_000 })
    return { code: run.status, stdout: run.stdout, stderr: run.stderr }
  }

  before(async () => {
    const busy = script(join(folder, 'busy'), { tokens: 400, tokensPerSecond: 4 })
    daemon = await startDaemon({ args: ['--model', busy] })
    const stored = join(daemon.home, 'models')
    script(join(stored, 'visitor-0123456789ab'), { say: 'Here I am.', tokensPerSecond: 200 })
    script(join(stored, 'slow-0123456789ab'), { say: 'L', tokensPerSecond: 200, loadMs: 14_000 })
    // Listing looks at the disk again.
    assert.equal(cli('list').code, 0)
  })

  after(async () => {
    await daemon.stop()
    rmSync(folder, { recursive: true })
  })

  test('a model that nobody has loaded is loaded by asking it, under an alias too, and the name is echoed', async () => {
    assert.equal(cli('alias', 'gpt-4o=visitor', 'claude-*=visitor').code, 0)
    assert.match(cli('alias').stdout, /claude-\*\s+visitor\n\s*gpt-4o\s+visitor/)
    for (const model of ['gpt-4o', 'claude-opus-9', 'visitor']) {
      const messages = [{ role: 'user', content: 'Who is there?' }]
      const answer = await json<{ model: string; choices: { message: { content: string } }[] }>(
        post('/v1/chat/completions', { model, messages }),
      )
      assert.equal(answer.model, model)
      assert.equal(answer.choices[0]?.message.content, 'Here I am.')
    }
    const { data } = await json<{ data: { id: string }[] }>(fetch(`${daemon.url}/v1/models`))
    assert.ok(data.some(({ id }) => id === 'gpt-4o'))
    assert.equal(cli('alias', '--remove', 'gpt-4o').code, 0)
    assert.equal(
      (await post('/v1/chat/completions', { model: 'gpt-4o', messages: [] })).status,
      400,
    )
    const gone = await post('/v1/chat/completions', {
      model: 'gpt-4o',
      messages: [{ role: 'user', content: 'x' }],
    })
    assert.equal(gone.status, 404)
  })

  test('a model goes when it was idle for as long as a request said, and never one that a person loaded', async () => {
    const asked = { model: 'visitor', prompt: 'Hi', stream: false, keep_alive: '1s' }
    const said = await json<{ response: string }>(post('/api/generate', asked))
    assert.equal(said.response, 'Here I am.')
    assert.ok((await loadedNames()).includes('visitor:latest'))
    const deadline = performance.now() + 8000
    while ((await loadedNames()).includes('visitor:latest') && performance.now() < deadline)
      await sleep(100)
    assert.ok(!(await loadedNames()).includes('visitor:latest'))
    await (
      await post('/api/generate', {
        ...asked,
        model: 'busy',
        keep_alive: 0,
        options: { num_predict: 1 },
      })
    ).text()
    await sleep(1500)
    assert.ok((await loadedNames()).includes('busy:latest'))
  })

  test('an empty Ollama request loads, and with keep_alive 0 unloads', async () => {
    const loaded = await json<{ done_reason: string }>(
      post('/api/generate', { model: 'visitor', keep_alive: '5m' }),
    )
    assert.equal(loaded.done_reason, 'load')
    assert.ok((await loadedNames()).includes('visitor:latest'))
    const unloaded = await json<{ done_reason: string }>(
      post('/api/chat', { model: 'visitor', keep_alive: 0 }),
    )
    assert.equal(unloaded.done_reason, 'unload')
  })

  test('while a model is loaded, each protocol is kept alive in its own form within ten seconds', async () => {
    const model = 'slow'
    const words = 'Are you there?'
    const messages = [{ role: 'user', content: words }]
    const forms = [
      ['/v1/chat/completions', { model, messages, stream: true }, /^: keep-alive/m],
      ['/v1/completions', { model, prompt: words, stream: true }, /^: keep-alive/m],
      [
        '/v1/responses',
        { model, input: words, stream: true },
        /(?:^event: response\.in_progress\n[^]*){2}/m,
      ],
      ['/v1/messages', { model, messages, max_tokens: 20, stream: true }, /^event: ping$/m],
      ['/api/chat', { model, messages }, /"content":""[^\n]*"done":false/],
    ] as const
    await Promise.all(
      forms.map(async ([path, body, wanted]) => {
        const response = await post(path, body)
        assert.equal(response.status, 200)
        const decoder = new TextDecoder()
        let text = ''
        let lastMs = performance.now()
        assert(response.body !== null)
        for await (const chunk of response.body) {
          const nowMs = performance.now()
          assert.ok(
            nowMs - lastMs < 10_000,
            `${path} was silent for ${Math.round(nowMs - lastMs)} ms`,
          )
          lastMs = nowMs
          text += decoder.decode(chunk as Uint8Array, { stream: true })
        }
        assert.match(text, wanted, path)
        assert.match(text, /"L"/, path)
      }),
    )
  })

  test('a full queue is 429 with Retry-After, which the SDK waits for', async () => {
    const full = new AbortController()
    const messages = [{ role: 'user' as const, content: 'x' }]
    const body = { model: 'busy', messages, stream: true }
    const held = Array.from({ length: 96 }, () =>
      fetch(`${daemon.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: full.signal,
      }),
    )
    await Promise.all(held)
    const refused = await post('/v1/chat/completions', body)
    assert.equal(refused.status, 429)
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
    const options = { baseURL: `${daemon.url}/v1`, apiKey: 'unused' }
    const hasty = new OpenAI({ ...options, maxRetries: 0 })
    const asked = { model: 'busy', messages, max_tokens: 1 }
    await assert.rejects(hasty.chat.completions.create(asked), RateLimitError)
    const patient = new OpenAI({ ...options, maxRetries: 3 }).chat.completions.create(asked)
    await sleep(300)
    full.abort()
    assert.equal((await patient).choices.length, 1)
  })
})
