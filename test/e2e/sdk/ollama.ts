// Ollama's own client, through the extra listener that greets as Ollama does.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { Ollama } from 'ollama'

const model = 'SmolLM2-135M-Instruct'
const person = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 6 },
    age: { type: 'integer', maximum: 120, minimum: 0 },
  },
  required: ['name', 'age'],
  additionalProperties: false,
}

export function ollamaTests(url: () => string): void {
  let ollama: Ollama

  before(() => {
    ollama = new Ollama({ host: url() })
  })

  test('GET and HEAD of / say that Ollama is running', async () => {
    assert.equal(await (await fetch(`${url()}/`)).text(), 'Ollama is running')
    assert.equal((await fetch(`${url()}/`, { method: 'HEAD' })).status, 200)
    assert.match(
      ((await (await fetch(`${url()}/api/version`)).json()) as { version: string }).version,
      /^\d+\.\d+/,
    )
  })

  test('models are listed, shown, and listed as loaded', async () => {
    const { models } = await ollama.list()
    assert.ok(models.some(({ name }) => name === `${model}:latest`))
    const shown = await ollama.show({ model })
    assert.ok(shown.capabilities.includes('completion'))
    assert.ok(shown.capabilities.includes('tools'))
    const loaded = await ollama.ps()
    assert.equal(loaded.models[0]?.name, `${model}:latest`)
  })

  test('a chat is the same whole and streamed, with durations', async () => {
    const asked = {
      model,
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
      options: { temperature: 0, num_predict: 20 },
    }
    const whole = await ollama.chat(asked)
    assert.match(whole.message.content, /Paris/)
    assert.equal(whole.done, true)
    let text = ''
    let last: { done: boolean; eval_count: number; total_duration: number } | null = null
    for await (const part of await ollama.chat({ ...asked, stream: true })) {
      text += part.message.content
      last = part
    }
    assert.equal(text, whole.message.content)
    assert.equal(last?.eval_count, whole.eval_count)
    assert.ok((last?.total_duration ?? 0) > 1e6)
  })

  test('generate answers, raw prompts are continued, and a format is kept', async () => {
    const options = { temperature: 0, num_predict: 60 }
    const said = await ollama.generate({
      model,
      prompt: 'Say hello.',
      options: { ...options, num_predict: 5 },
    })
    assert.ok(said.response !== '')
    const raw = await ollama.generate({
      model,
      prompt: 'One, two, three,',
      raw: true,
      options: { ...options, num_predict: 3 },
    })
    assert.match(raw.response ?? '', /four/)
    const formed = await ollama.generate({
      model,
      prompt: 'Invent a person.',
      format: person,
      options,
    })
    assert.deepEqual(Object.keys(JSON.parse(formed.response ?? '') as object), ['name', 'age'])
  })

  test('tools are offered to a chat', async () => {
    const tool = {
      type: 'function',
      function: {
        name: 'clock',
        description: 'Tells the time',
        parameters: { type: 'object', properties: {} },
      },
    }
    const answer = await ollama.chat({
      model,
      messages: [{ role: 'user', content: 'What time is it? Call the clock.' }],
      tools: [tool],
      options: { temperature: 0, num_predict: 16 },
    })
    for (const call of answer.message.tool_calls ?? [])
      assert.equal(typeof call.function.arguments, 'object')
  })

  test('a copy is another name, and deleting it leaves the model', async () => {
    await ollama.copy({ source: model, destination: 'little' })
    const said = await ollama.generate({
      model: 'little',
      prompt: 'Hi',
      options: { num_predict: 1 },
    })
    assert.equal(said.model, 'little')
    await ollama.delete({ model: 'little' })
    await assert.rejects(ollama.show({ model: 'little' }), /does not exist/)
    assert.ok((await ollama.list()).models.length > 0)
    await assert.rejects(ollama.delete({ model }), /loaded|stays/)
  })

  test('a pull of a URL is refused, one of what is here succeeds', async () => {
    await assert.rejects(ollama.pull({ model: 'http://169.254.169.254/x' }), /no name on the hub/)
    assert.equal((await ollama.pull({ model })).status, 'success')
  })

  test('a chat model embeds nothing and says why', async () => {
    await assert.rejects(ollama.embed({ model, input: 'a' }), /not an embedding model/)
  })

  test('an unknown model is told in the sentence', async () => {
    await assert.rejects(
      ollama.chat({ model: 'llama9', messages: [{ role: 'user', content: 'x' }] }),
      /llama9.*does not exist/,
    )
  })
}
