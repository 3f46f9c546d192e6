// Structured output is always true: forty schemas here, three hundred in the long run; and the knowledge base
// holds even the smallest model to what the findings say.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
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
    const count = 24
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

  test('kb ask with the starter model cites what was retrieved, never loops, and shows the findings', async (t) => {
    const question = 'how do I turn on RDMA?'
    const { stdout } = await promisify(execFile)(
      join(import.meta.dirname, '..', '..', 'bushel'),
      ['kb', 'ask', question, '--json'],
      { env: { ...process.env, BUSHEL_HOME: daemon.home, BUSHEL_PORT: new URL(daemon.url).port } },
    )
    const answer = JSON.parse(stdout) as {
      kind: string
      reason?: string
      answer?: string
      cites?: number[]
      findings: { id: number }[]
    }
    t.diagnostic(`${answer.kind}: ${answer.answer ?? answer.reason ?? ''}`)
    const retrieved = answer.findings.map(({ id }) => id)
    assert.ok(retrieved.includes(413))
    if (answer.kind !== 'answered') {
      // Its words could not stand; the findings themselves are the answer, and it says so.
      assert.equal(answer.kind, 'findings-shown')
      assert.match(answer.reason ?? '', /SmolLM2-135M-Instruct/)
      return
    }
    assert.ok((answer.cites ?? []).length > 0)
    for (const id of answer.cites ?? []) assert.ok(retrieved.includes(id))
    const sentences = (answer.answer ?? '').split(/(?<=\(kb#\d+\)\.) /)
    assert.equal(new Set(sentences).size, sentences.length)
    assert.ok(sentences.length <= 3 && (answer.answer ?? '').length < 1000)
  })
})
