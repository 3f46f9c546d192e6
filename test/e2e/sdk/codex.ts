// The requests that Codex sends, written down as it sends them, and the events that its parser acts on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createParser } from 'eventsource-parser'
import type { TestDaemon } from '../daemon.ts'

interface Event {
  readonly type: string
  readonly sequence_number: number
  readonly item?: {
    readonly type: string
    readonly call_id?: string
    readonly arguments?: string
    readonly input?: string
    readonly name?: string
  }
  readonly response?: {
    readonly id: string
    readonly usage: Record<string, unknown> | null
    readonly status: string
  }
}

const shell = {
  type: 'function',
  name: 'shell',
  description: 'Runs a command',
  strict: false,
  parameters: {
    type: 'object',
    properties: {
      command: {
        type: 'array',
        items: { enum: ['ls', 'cat', '-l'] },
        minItems: 1,
        maxItems: 2,
      },
    },
    required: ['command'],
    additionalProperties: false,
  },
}
const patch = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
}
const said = (role: string, text: string) => ({
  type: 'message',
  role,
  content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
})

export function codexTests(daemon: () => TestDaemon): void {
  const send = async (changes: object): Promise<readonly Event[]> => {
    const response = await fetch(`${daemon().url}/v1/responses`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        originator: 'codex_cli_rs',
        session_id: '00000000-0000-4000-8000-000000000000',
      },
      body: JSON.stringify({
        model: 'gpt-5-codex',
        instructions: 'You are a coding agent.',
        tools: [shell, patch, { type: 'web_search' }],
        tool_choice: 'auto',
        parallel_tool_calls: true,
        reasoning: { effort: 'medium', summary: 'auto' },
        store: false,
        stream: true,
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: '00000000-0000-4000-8000-000000000000',
        text: { verbosity: 'medium' },
        max_output_tokens: 32,
        temperature: 0,
        ...changes,
      }),
    })
    assert.equal(response.status, 200, await (response.ok ? '' : response.text()))
    const events: Event[] = []
    const parser = createParser({
      onEvent: ({ event, data }) => {
        const parsed = JSON.parse(data) as Event
        assert.equal(parsed.type, event)
        events.push(parsed)
      },
    })
    parser.feed(await response.text())
    return events
  }

  const checkLife = (events: readonly Event[]): void => {
    assert.equal(events[0]?.type, 'response.created')
    events.forEach((event, index) => assert.equal(event.sequence_number, index))
    const added = events.filter(({ type }) => type === 'response.output_item.added').length
    const done = events.filter(({ type }) => type === 'response.output_item.done').length
    assert.equal(added, done)
    const last = events.at(-1)
    assert.match(last?.type ?? '', /^response\.(completed|incomplete)$/)
    assert.ok(last?.response?.id)
    for (const field of ['input_tokens', 'output_tokens', 'total_tokens'])
      assert.equal(typeof last.response.usage?.[field], 'number')
    assert.deepEqual(Object.keys(last.response.usage?.['input_tokens_details'] ?? {}), [
      'cached_tokens',
    ])
    assert.deepEqual(Object.keys(last.response.usage?.['output_tokens_details'] ?? {}), [
      'reasoning_tokens',
    ])
  }

  test("Codex's first turn", async () => {
    const events = await send({
      input: [said('developer', '<permissions>read only</permissions>'), said('user', 'say hi')],
    })
    checkLife(events)
    assert.ok(events.some(({ type }) => type.startsWith('response.output_')))
  })

  test("Codex's call of a function comes whole in output_item.done", async () => {
    const events = await send({
      input: [said('user', 'list the files')],
      tool_choice: { type: 'function', name: 'shell' },
    })
    checkLife(events)
    const call = events.find(
      ({ type, item }) => type === 'response.output_item.done' && item?.type === 'function_call',
    )
    assert.equal(call?.item?.name, 'shell')
    assert.ok(call.item.call_id)
    assert.ok(
      Array.isArray((JSON.parse(call.item.arguments ?? '') as { command: unknown }).command),
    )
  })

  test("Codex's freeform tool is called with plain input", async () => {
    const events = await send({
      input: [said('user', 'edit')],
      tool_choice: { type: 'custom', name: 'apply_patch' },
    })
    checkLife(events)
    const call = events.find(({ item }) => item?.type === 'custom_tool_call')
    assert.equal(call?.item?.name, 'apply_patch')
    assert.equal(typeof call.item.input, 'string')
  })

  test("Codex's later turn with reasoning, calls and their outputs", async () => {
    const events = await send({
      input: [
        said('user', 'list the files'),
        {
          type: 'reasoning',
          summary: [],
          content: null,
          encrypted_content: 'gAAAAA-from-elsewhere',
        },
        {
          type: 'function_call',
          name: 'shell',
          arguments: '{"command":["ls"]}',
          call_id: 'call_1',
        },
        {
          type: 'function_call_output',
          call_id: 'call_1',
          output: '{"output":"a.txt","metadata":{"exit_code":0}}',
        },
        {
          type: 'custom_tool_call',
          name: 'apply_patch',
          input: '*** Begin Patch',
          call_id: 'call_2',
          status: 'completed',
        },
        { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
        said('assistant', 'There is one file.'),
        said('user', 'thanks'),
      ],
    })
    checkLife(events)
  })
}
