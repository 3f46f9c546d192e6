// An embedding model through each protocol. The starter stands in for one: its folder, with the files by which
// such models say what they are.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { type TestDaemon, startDaemon } from './daemon.ts'
import { writeEmbedder } from './embedder.ts'

describe('embeddings', () => {
  let folder = ''
  let daemon: TestDaemon

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bushel-embedder-'))
    const model = join(folder, 'embedder')
    writeEmbedder(model)
    daemon = await startDaemon({ args: ['--model', model] })
  })

  after(async () => {
    await daemon.stop()
    rmSync(folder, { recursive: true })
  })

  test('texts become unit vectors, the same alone and in a list, as floats and in base64', async () => {
    const openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: 'unused', maxRetries: 0 })
    const input = ['A cat sat on the mat.', 'Rain fell all day.']
    const both = await openai.embeddings.create({
      model: 'embedder',
      input,
      encoding_format: 'float',
    })
    const [cat, rain] = both.data.map(({ embedding }) => embedding)
    assert(cat !== undefined && rain !== undefined)
    assert.equal(cat.length, 576)
    assert.ok(Math.abs(Math.hypot(...cat) - 1) < 1e-5)
    assert.notDeepEqual(cat, rain)
    // The SDK asks for base64 by itself and decodes it.
    const alone = await openai.embeddings.create({ model: 'embedder', input: input[0] ?? '' })
    alone.data[0]?.embedding.forEach((value, at) =>
      assert.ok(Math.abs(value - (cat[at] ?? 9)) < 1e-6),
    )
    const short = await openai.embeddings.create({
      model: 'embedder',
      input,
      dimensions: 64,
      encoding_format: 'float',
    })
    assert.equal(short.data[0]?.embedding.length, 64)
    assert.ok(both.usage.prompt_tokens > 8)
  })

  test("Ollama's client gets the same, and a chat is refused", async () => {
    const ollama = new Ollama({ host: daemon.url })
    const { embeddings } = await ollama.embed({
      model: 'embedder',
      input: ['A cat sat on the mat.'],
    })
    assert.equal(embeddings[0]?.length, 576)
    assert.deepEqual((await ollama.show({ model: 'embedder' })).capabilities, ['embedding'])
    const messages = [{ role: 'user', content: 'Hi' }]
    await assert.rejects(ollama.chat({ model: 'embedder', messages }), /is an embedding model/)
  })
})
