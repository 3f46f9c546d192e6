// A thousand requests over every protocol, sixteen at once: none of them is answered wrongly.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mixedRequests } from '../../bench/lib/mixed.ts'
import { startDaemon } from '../e2e/daemon.ts'

test('of a thousand mixed requests none is answered wrongly, though a tenth hangs up', async (t) => {
  const daemon = await startDaemon()
  try {
    const about = { model: 'SmolLM2-135M-Instruct', count: 1000 }
    const { wrong, hungUp, seconds } = await mixedRequests(daemon.url, about)
    t.diagnostic(
      `${wrong.length} wrong of ${about.count}, ${hungUp} hung up, ${seconds.toFixed(0)} s`,
    )
    assert.deepEqual(wrong.slice(0, 10), [])
    assert.equal(hungUp, 100)
  } finally {
    await daemon.stop()
  }
})
