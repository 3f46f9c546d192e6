// OpenAI's own SDK: what its users do every day.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import OpenAI, { APIUserAbortError, NotFoundError } from 'openai'
import type { TestDaemon } from '../daemon.ts'

const model = 'SmolLM2-135M-Instruct'
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: {
      type: 'object',
      properties: {
        city: { enum: ['Paris', 'Rome'] },
        days: { type: 'integer', maximum: 9, minimum: 0 },
      },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
} as const
const person = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 8 },
    age: { type: 'integer', minimum: 0, maximum: 120 },
  },
  required: ['name', 'age'],
  additionalProperties: false,
} as const
const ask = (content: string) => [{ role: 'user' as const, content }]

export function openAiTests(daemon: () => TestDaemon): void {
  let openai: OpenAI

  before(() => {
    openai = new OpenAI({ baseURL: `${daemon().url}/v1`, apiKey: 'unused', maxRetries: 0 })
  })

  test('models are listed and found, and an unknown one is a NotFoundError', async () => {
    const listed = await openai.models.list()
    assert.ok(listed.data.some(({ id }) => id === model))
    assert.equal((await openai.models.retrieve(model)).id, model)
    await assert.rejects(openai.models.retrieve('gpt-99'), NotFoundError)
  })

  test('a chat is the same whole and streamed, with usage', async () => {
    const asked = {
      model,
      messages: ask('What is the capital of France?'),
      max_tokens: 20,
      temperature: 0,
    }
    const whole = await openai.chat.completions.create(asked)
    const stream = openai.chat.completions.stream({
      ...asked,
      stream_options: { include_usage: true },
    })
    const streamed = await stream.finalChatCompletion()
    assert.match(whole.choices[0]?.message.content ?? '', /Paris/)
    assert.equal(streamed.choices[0]?.message.content, whole.choices[0]?.message.content)
    assert.equal(streamed.usage?.completion_tokens, whole.usage?.completion_tokens)
    assert.equal(typeof whole.usage?.prompt_tokens_details?.cached_tokens, 'number')
  })

  test('n choices differ, are the same for the same seed, and the prompt is counted once', async () => {
    const asked = {
      model,
      messages: ask('Invent a name.'),
      n: 3,
      seed: 7,
      max_tokens: 8,
      temperature: 1.2,
    }
    const first = await openai.chat.completions.create(asked)
    const again = await openai.chat.completions.create(asked)
    const texts = first.choices.map(({ message }) => message.content)
    assert.equal(new Set(texts).size, 3)
    assert.deepEqual(
      again.choices.map(({ message }) => message.content),
      texts,
    )
    const one = await openai.chat.completions.create({ ...asked, n: 1 })
    assert.equal(one.choices[0]?.message.content, texts[0])
    assert.equal(first.usage?.prompt_tokens, one.usage?.prompt_tokens)
  })

  test('logprobs name the chosen token and its rivals, and a bias forbids', async () => {
    const asked = { model, messages: ask('Say yes.'), max_tokens: 3, temperature: 0 }
    const told = await openai.chat.completions.create({ ...asked, logprobs: true, top_logprobs: 3 })
    const tokens = told.choices[0]?.logprobs?.content ?? []
    assert.equal(tokens.map(({ token }) => token).join(''), told.choices[0]?.message.content)
    for (const { top_logprobs, logprob, token } of tokens) {
      assert.equal(top_logprobs.length, 3)
      assert.ok(top_logprobs.some((other) => other.token === token && other.logprob === logprob))
    }
    const again = await openai.chat.completions.create({
      ...asked,
      logit_bias: Object.fromEntries(
        Array.from({ length: 40_000 }, (_, id) => [id, id < 2000 ? 0 : -100]),
      ),
    })
    assert.notEqual(again.choices[0]?.message.content, told.choices[0]?.message.content)
  })

  test('a named tool is called with arguments that fit, streamed under one index and id', async () => {
    const stream = await openai.chat.completions.create({
      model,
      messages: ask('What is the weather in Paris for 3 days?'),
      tools: [weather],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      max_tokens: 120,
      temperature: 0,
      stream: true,
    })
    let text = ''
    const ids = new Set<string>()
    let finish: string | null = null
    for await (const { choices } of stream) {
      finish = choices[0]?.finish_reason ?? finish
      for (const call of choices[0]?.delta.tool_calls ?? []) {
        assert.equal(call.index, 0)
        assert.ok(call.function)
        if (call.id !== undefined) {
          ids.add(call.id)
          assert.equal(call.function.name, 'get_weather')
        } else assert.equal(call.function.name, undefined)
        text += call.function.arguments ?? ''
      }
    }
    assert.equal(finish, 'tool_calls')
    assert.equal(ids.size, 1)
    const parsed = JSON.parse(text) as { city: string; days: number }
    assert.equal(typeof parsed.city, 'string')
    assert.ok(Number.isInteger(parsed.days) && parsed.days <= 9)
  })

  test('a required call, its result, and the answer to it', async () => {
    const messages = ask('What is the weather in Paris?')
    const first = await openai.chat.completions.create({
      model,
      messages,
      tools: [weather],
      tool_choice: 'required',
      parallel_tool_calls: false,
      max_tokens: 120,
      temperature: 0,
    })
    const message = first.choices[0]?.message
    assert.equal(message?.tool_calls?.length, 1)
    const [call] = message.tool_calls
    assert.ok(call)
    const second = await openai.chat.completions.create({
      model,
      messages: [
        ...messages,
        message,
        { role: 'tool', tool_call_id: call.id, content: '{"sky":"clear","celsius":21}' },
      ],
      tools: [weather],
      tool_choice: 'none',
      max_tokens: 40,
      temperature: 0,
    })
    assert.ok((second.choices[0]?.message.content ?? '').length > 0)
    assert.equal(second.choices[0]?.message.tool_calls, undefined)
  })

  test('json_schema and json_object give JSON that fits', async () => {
    const asked = {
      model,
      messages: ask('Invent a person.'),
      max_tokens: 100,
      temperature: 0.8,
      seed: 3,
    }
    const strict = await openai.chat.completions.create({
      ...asked,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'person', strict: true, schema: person },
      },
    })
    assert.equal(strict.choices[0]?.finish_reason, 'stop')
    const value = JSON.parse(strict.choices[0]?.message.content ?? '') as Record<string, unknown>
    assert.deepEqual(Object.keys(value), ['name', 'age'])
    const loose = await openai.chat.completions.create({
      ...asked,
      max_tokens: 200,
      response_format: { type: 'json_object' },
    })
    if (loose.choices[0]?.finish_reason === 'stop')
      assert.equal(typeof JSON.parse(loose.choices[0]?.message.content ?? ''), 'object')
  })

  test('completions continue text, echo it, and refuse a suffix', async () => {
    const asked = { model, prompt: 'One, two, three,', max_tokens: 6, temperature: 0 }
    const plain = await openai.completions.create(asked)
    const echoed = await openai.completions.create({ ...asked, echo: true })
    assert.equal(echoed.choices[0]?.text, asked.prompt + (plain.choices[0]?.text ?? ''))
    const many = await openai.completions.create({
      ...asked,
      prompt: [asked.prompt, 'A, B, C,'],
      n: 2,
      logprobs: 1,
    })
    assert.equal(many.choices.length, 4)
    assert.equal(many.choices[0]?.text, plain.choices[0]?.text)
    let streamed = ''
    for await (const chunk of await openai.completions.create({ ...asked, stream: true }))
      streamed += chunk.choices[0]?.text ?? ''
    assert.equal(streamed, plain.choices[0]?.text)
    await assert.rejects(openai.completions.create({ ...asked, suffix: 'end' }), /suffix/i)
  })

  test('responses: whole, streamed in order, continued, fetched, deleted', async () => {
    const asked = {
      model,
      input: 'My name is Ada. Say hello.',
      max_output_tokens: 30,
      temperature: 0,
    }
    const whole = await openai.responses.create(asked)
    assert.equal(whole.status === 'completed' || whole.status === 'incomplete', true)
    assert.ok(whole.output_text.length > 0)
    const events: string[] = []
    const stream = openai.responses.stream(asked)
    for await (const event of stream) events.push(event.type)
    assert.equal((await stream.finalResponse()).output_text, whole.output_text)
    assert.deepEqual(events.slice(0, 4), [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
    ])
    const next = await openai.responses.create({
      ...asked,
      previous_response_id: whole.id,
      input: 'What is my name?',
    })
    assert.ok((next.usage?.input_tokens ?? 0) > (whole.usage?.input_tokens ?? 0))
    assert.equal((await openai.responses.retrieve(next.id)).id, next.id)
    await openai.responses.delete(next.id)
    await assert.rejects(openai.responses.retrieve(next.id), NotFoundError)
    await assert.rejects(
      openai.responses.create({ ...asked, previous_response_id: next.id }),
      /not kept here/,
    )
  })

  test('responses call functions and keep to a schema', async () => {
    const { name, parameters } = weather.function
    const called = await openai.responses.create({
      model,
      input: 'Weather in Paris?',
      tools: [{ type: 'function', name, parameters, strict: true }],
      tool_choice: 'required',
      max_output_tokens: 120,
      temperature: 0,
    })
    const call = called.output.find((item) => item.type === 'function_call')
    assert.equal(call?.name, 'get_weather')
    assert.equal(typeof JSON.parse(call.arguments), 'object')
    const formed = await openai.responses.create({
      model,
      input: 'Invent a person.',
      text: { format: { type: 'json_schema', name: 'person', schema: person, strict: true } },
      max_output_tokens: 100,
    })
    assert.deepEqual(Object.keys(JSON.parse(formed.output_text) as object), ['name', 'age'])
  })

  test('a response in the background can be cancelled', async () => {
    const asked = await openai.responses.create({
      model,
      input: 'Write a very long story.',
      background: true,
      max_output_tokens: 4000,
    })
    assert.equal(asked.status, 'queued')
    await openai.responses.cancel(asked.id)
    assert.equal((await openai.responses.retrieve(asked.id)).status, 'cancelled')
  })

  test('a chat model embeds nothing and says why', async () => {
    await assert.rejects(openai.embeddings.create({ model, input: 'a' }), /not an embedding model/)
  })

  test('an aborted stream ends at once and frees its slot', async () => {
    const stream = openai.chat.completions.stream({
      model,
      messages: ask('Tell a long story.'),
      max_tokens: 2000,
    })
    await assert.rejects(async () => {
      for await (const _chunk of stream) stream.abort()
    }, APIUserAbortError)
    const next = await openai.chat.completions.create({ model, messages: ask('Hi'), max_tokens: 2 })
    assert.equal(next.object, 'chat.completion')
  })
}
