// Three hundred schemas with the starter model.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDaemon } from '../e2e/daemon.ts'
import { tryStructured } from '../support/structured.ts'

test('whatever ended by itself is valid, over three hundred schemas', async (t) => {
  const daemon = await startDaemon()
  try {
    const count = 300
    const model = 'SmolLM2-135M-Instruct'
    const { valid, cut, refused } = await tryStructured(daemon.url, { model, count })
    t.diagnostic(
      `${valid} valid, ${cut} cut at max_tokens, refused: ${refused.toSorted().join(', ')}`,
    )
    assert.equal(valid + cut + refused.length, count)
  } finally {
    await daemon.stop()
  }
})
