// The real SDKs against a real daemon with the starter model. They share one daemon: starting it is most of
// the work, and clients of one server meet each other anyway.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type TestDaemon, freePort, startDaemon } from './daemon.ts'
import { anthropicTests } from './sdk/anthropic.ts'
import { codexTests } from './sdk/codex.ts'
import { frameworkTests } from './sdk/frameworks.ts'
import { ollamaTests } from './sdk/ollama.ts'
import { openAiTests } from './sdk/openai.ts'

const model = 'SmolLM2-135M-Instruct'
const canary = 'zanzibar-quokka-4711'

describe('clients', () => {
  let running: TestDaemon | null = null
  let ollamaUrl = ''
  const daemon = (): TestDaemon => {
    assert(running !== null)
    return running
  }

  before(async () => {
    const port = await freePort()
    ollamaUrl = `http://127.0.0.1:${port}`
    running = await startDaemon({
      args: ['--ollama', String(port)],
      env: { BUSHEL_LOG_LEVEL: 'debug' },
    })
    for (const name of ['claude-*', 'gpt-5-codex']) {
      const body = JSON.stringify({ name, model })
      assert.ok((await fetch(`${running.url}/cluster/aliases`, { method: 'POST', body })).ok)
    }
  })

  after(async () => {
    await running?.stop()
  })

  describe("OpenAI's SDK", () => openAiTests(daemon))
  describe("Anthropic's SDK and Claude Code", () => anthropicTests(daemon))
  describe("Ollama's client", () => ollamaTests(() => ollamaUrl))
  describe('frameworks', () => frameworkTests(daemon))
  describe('Codex', () => codexTests(daemon))

  test('prompts and answers are in no log and no file', async () => {
    const send = (path: string, body: object): Promise<Response> =>
      fetch(`${daemon().url}${path}`, { method: 'POST', body: JSON.stringify(body) })
    const messages = [{ role: 'user', content: `Repeat: ${canary}` }]
    await (await send('/v1/chat/completions', { model, messages, max_tokens: 8 })).text()
    await (await send('/v1/chat/completions', { model, messages, max_tokens: canary })).text()
    await (await send('/v1/chat/completions', { model: canary, messages })).text()
    await (await send('/v1/responses', { model, input: canary, max_output_tokens: 4 })).text()
    await (await send('/v1/messages', { model, messages, max_tokens: 4 })).text()
    await (
      await send('/api/generate', { model, prompt: canary, options: { num_predict: 4 } })
    ).text()
    await fetch(`${daemon().url}/v1/chat/completions`, { method: 'POST', body: `{"${canary}` })
    const files = readdirSync(daemon().home, { recursive: true, withFileTypes: true })
    assert.ok(files.some(({ name }) => name.endsWith('.log')))
    for (const file of files) {
      if (!file.isFile()) continue
      const path = join(file.parentPath, file.name)
      assert.ok(!readFileSync(path).includes(canary), `${path} holds a prompt`)
    }
  })
})
