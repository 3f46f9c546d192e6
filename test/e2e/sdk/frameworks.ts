// Frameworks that people build with: the AI SDK with its OpenAI-compatible and Anthropic providers, LangChain.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { Output, generateText, jsonSchema, streamText, tool } from 'ai'
import type { TestDaemon } from '../daemon.ts'

const model = 'SmolLM2-135M-Instruct'
const person = {
  type: 'object',
  properties: { name: { enum: ['Ada', 'Grace'] } },
  required: ['name'],
  additionalProperties: false,
} as const

export function frameworkTests(daemon: () => TestDaemon): void {
  const providers = () => ({
    'openai-compatible': createOpenAICompatible({
      name: 'bushel',
      baseURL: `${daemon().url}/v1`,
      supportsStructuredOutputs: true,
      includeUsage: true,
    })(model),
    anthropic: createAnthropic({ baseURL: `${daemon().url}/v1`, apiKey: 'x' })('claude-haiku-9'),
  })

  for (const name of ['openai-compatible', 'anthropic'] as const) {
    test(`the AI SDK through ${name}: text, a stream, a tool, an object`, async () => {
      const at = providers()[name]
      const asked = {
        model: at,
        prompt: 'What is the capital of France?',
        temperature: 0,
        maxOutputTokens: 12,
        maxRetries: 0,
      }
      const whole = await generateText(asked)
      assert.match(whole.text, /Paris/)
      const stream = streamText(asked)
      let text = ''
      for await (const piece of stream.textStream) text += piece
      assert.equal(text, whole.text)
      assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens)
      const called = await generateText({
        ...asked,
        maxOutputTokens: 60,
        tools: {
          greet: tool({ description: 'Greets', inputSchema: jsonSchema<{ name: string }>(person) }),
        },
        toolChoice: 'required',
      })
      assert.equal(called.toolCalls[0]?.toolName, 'greet')
      if (name === 'anthropic') return
      const formed = await generateText({
        ...asked,
        maxOutputTokens: 40,
        prompt: 'Invent a name.',
        output: Output.object({ schema: jsonSchema<{ name: string }>(person) }),
      })
      assert.equal(typeof formed.output.name, 'string')
    })
  }

  test('LangChain: an answer, a stream, a bound tool, structured output', async () => {
    const fields = {
      model,
      temperature: 0,
      maxRetries: 0,
      apiKey: 'unused',
      configuration: { baseURL: `${daemon().url}/v1` },
    }
    const chat = new ChatOpenAI({ ...fields, maxTokens: 12 })
    const wide = new ChatOpenAI({ ...fields, maxTokens: 60 })
    const question = [new HumanMessage('What is the capital of France?')]
    const whole = await chat.invoke(question)
    assert.match(whole.text, /Paris/)
    let text = ''
    for await (const chunk of await chat.stream(question)) text += chunk.text
    assert.equal(text, whole.text)
    const tools = [{ type: 'function' as const, function: { name: 'greet', parameters: person } }]
    const called = await wide.bindTools(tools, { tool_choice: 'greet' }).invoke('Greet Ada.')
    assert.equal(called.tool_calls?.[0]?.name, 'greet')
    const formed = await wide
      .withStructuredOutput(person, { method: 'jsonSchema', name: 'person' })
      .invoke('Invent a name.')
    assert.equal(typeof formed['name'], 'string')
  })
}
