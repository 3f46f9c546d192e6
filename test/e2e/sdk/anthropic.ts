// Anthropic's own SDK, and the requests that Claude Code sends.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import Anthropic, { BadRequestError } from '@anthropic-ai/sdk'
import { createParser } from 'eventsource-parser'
import type { TestDaemon } from '../daemon.ts'

const model = 'claude-sonnet-9'
const weather: Anthropic.Tool = {
  name: 'get_weather',
  description: 'The weather of a city',
  input_schema: {
    type: 'object',
    properties: { city: { enum: ['Paris', 'Rome'] } },
    required: ['city'],
    additionalProperties: false,
  },
}
const ask = (content: string): Anthropic.MessageParam[] => [{ role: 'user', content }]

export function anthropicTests(daemon: () => TestDaemon): void {
  let anthropic: Anthropic

  before(() => {
    anthropic = new Anthropic({ baseURL: daemon().url, apiKey: 'unused', maxRetries: 0 })
  })

  test('a message is the same whole and streamed, under the name that was asked for', async () => {
    const asked = {
      model,
      messages: ask('What is the capital of France?'),
      max_tokens: 20,
      temperature: 0,
    }
    const whole = await anthropic.messages.create(asked)
    assert.equal(whole.model, model)
    const [block] = whole.content
    assert.ok(block?.type === 'text' && /Paris/.test(block.text))
    const streamed = await anthropic.messages.stream(asked).finalMessage()
    assert.deepEqual(streamed.content, whole.content)
    assert.equal(streamed.stop_reason, whole.stop_reason)
    assert.deepEqual(streamed.usage.output_tokens, whole.usage.output_tokens)
  })

  test('a stop sequence is named, a length is told', async () => {
    const asked = { model, messages: ask('Count from one to ten: 1, 2, 3'), temperature: 0 }
    const cut = await anthropic.messages.create({ ...asked, max_tokens: 2 })
    assert.equal(cut.stop_reason, 'max_tokens')
    const stopped = await anthropic.messages.create({
      ...asked,
      max_tokens: 60,
      stop_sequences: ['4', 'e'],
    })
    assert.equal(stopped.stop_reason, 'stop_sequence')
    assert.match(stopped.stop_sequence ?? '', /^[4e]$/)
  })

  test('a tool is used, and its result is answered', async () => {
    const messages = ask('What is the weather in Paris?')
    const first = await anthropic.messages
      .stream({
        model,
        messages,
        tools: [weather],
        tool_choice: { type: 'any' },
        max_tokens: 120,
        temperature: 0,
      })
      .finalMessage()
    assert.equal(first.stop_reason, 'tool_use')
    const use = first.content.find((block) => block.type === 'tool_use')
    assert.ok(use)
    assert.equal(typeof (use.input as { city: unknown }).city, 'string')
    const second = await anthropic.messages.create({
      model,
      messages: [
        ...messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: use.id, content: 'Sunny, 21 degrees' }],
        },
      ],
      max_tokens: 30,
    })
    assert.equal(second.content[0]?.type, 'text')
  })

  test('tokens are counted as the message itself counts them', async () => {
    const asked = {
      model,
      messages: ask('How many tokens is this?'),
      system: 'Be brief.',
      tools: [weather],
    }
    const { input_tokens } = await anthropic.messages.countTokens(asked)
    const { usage } = await anthropic.messages.create({ ...asked, max_tokens: 1 })
    assert.equal(usage.input_tokens + (usage.cache_read_input_tokens ?? 0), input_tokens)
  })

  test('an image is refused with a sentence', async () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } as const
    const image = anthropic.messages.create({
      model,
      messages: [{ role: 'user', content: [{ type: 'image', source }] }],
      max_tokens: 5,
    })
    await assert.rejects(
      image,
      (error) => error instanceof BadRequestError && /reads text only/.test(error.message),
    )
  })

  test('what Claude Code sends: beta query, both keys, system blocks, tools, thinking', async () => {
    const response = await fetch(`${daemon().url}/v1/messages?beta=true`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14',
        'x-api-key': 'one',
        authorization: 'Bearer two',
        'user-agent': 'claude-cli/2.1.0 (external, cli)',
      },
      body: JSON.stringify({
        model: 'claude-opus-4-5-20251101',
        max_tokens: 24,
        stream: true,
        temperature: 1,
        system: [
          { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.0; cch=1a2b3;' },
          { type: 'text', text: 'You are a coding agent.', cache_control: { type: 'ephemeral' } },
        ],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: '<system-reminder>Today is Sunday.</system-reminder>' },
              { type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } },
            ],
          },
        ],
        tools: [{ name: 'Read', description: 'Reads a file', input_schema: weather.input_schema }],
        thinking: { type: 'enabled', budget_tokens: 1024 },
        metadata: { user_id: 'user_0_account__session_0' },
        context_management: { edits: [] },
      }),
    })
    assert.equal(response.status, 200)
    assert.match(response.headers.get('request-id') ?? '', /^req_/)
    const names: string[] = []
    const parser = createParser({
      onEvent: ({ event, data }) => {
        names.push(event ?? '')
        assert.equal((JSON.parse(data) as { type: string }).type, event)
      },
    })
    parser.feed(await response.text())
    assert.equal(names[0], 'message_start')
    assert.deepEqual(names.slice(-2), ['message_delta', 'message_stop'])
    assert.ok(names.includes('content_block_delta'))
  })

  test("Claude Code's changing billing line leaves the prompt the same", async () => {
    const count = async (line: string): Promise<number> => {
      const system = [
        { type: 'text' as const, text: line },
        { type: 'text' as const, text: 'Be brief.' },
      ]
      return (await anthropic.messages.countTokens({ model, messages: ask('x'), system }))
        .input_tokens
    }
    const plain = (
      await anthropic.messages.countTokens({ model, messages: ask('x'), system: 'Be brief.' })
    ).input_tokens
    assert.equal(await count('x-anthropic-billing-header: cc_version=1; cch=aa;'), plain)
    assert.equal(await count('x-anthropic-billing-header: cc_version=22; cch=bbbbbbb;'), plain)
  })
}
