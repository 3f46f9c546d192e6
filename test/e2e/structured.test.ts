// Structured output is always true: forty schemas here, three hundred in the long run.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { tryStructured } from '../support/structured.ts'
import { type TestDaemon, startDaemon } from './daemon.ts'

const model = 'SmolLM2-135M-Instruct'

describe('structured output', () => {
  let daemon: TestDaemon

  before(async () => {
    daemon = await startDaemon()
  })

  after(async () => {
    await daemon.stop()
  })

  test('whatever ended by itself is valid, what cannot be kept is refused by name', async (t) => {
    const count = 40
    const { valid, cut, refused } = await tryStructured(daemon.url, { model, count })
    t.diagnostic(
      `${valid} valid, ${cut} cut at max_tokens, refused: ${refused.toSorted().join(', ')}`,
    )
    assert.equal(valid + cut + refused.length, count)
    assert.ok(valid > count / 2)
  })

  test('a regex and a grammar are kept, and a broken one is refused', async () => {
    const ask = async (response_format: object): Promise<{ status: number; content: string }> => {
      const messages = [{ role: 'user', content: 'Answer.' }]
      const body = JSON.stringify({ model, messages, max_tokens: 20, response_format })
      const response = await fetch(`${daemon.url}/v1/chat/completions`, { method: 'POST', body })
      const parsed = (await response.json()) as { choices?: { message: { content: string } }[] }
      return { status: response.status, content: parsed.choices?.[0]?.message.content ?? '' }
    }
    assert.match(
      (await ask({ type: 'regex', pattern: '[0-9]{2}-(a|b)' })).content,
      /^[0-9]{2}-(a|b)$/,
    )
    assert.match(
      (await ask({ type: 'grammar', grammar: 'start: "yes" | "no"' })).content,
      /^(yes|no)$/,
    )
    for (const bad of [
      { type: 'regex', pattern: '(?=a)' },
      { type: 'grammar', grammar: 'start: nothing' },
      {
        type: 'json_schema',
        json_schema: { schema: { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } } },
      },
      { type: 'json_schema', json_schema: { schema: { type: 'string', pattern: '(?<=a)b' } } },
      { type: 'json_schema' },
    ])
      assert.equal((await ask(bad)).status, 400, JSON.stringify(bad))
  })
})
