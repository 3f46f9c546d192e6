// Two hundred readers at once: nothing breaks, nothing grows, and whoever finds no room is told so at once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureStreams, quantile } from './streams.ts'

const seconds = process.env['BUSHEL_LONG'] === undefined ? 60 : 600

test(`two hundred streams of ${seconds} s through one gateway`, async () => {
  const seen = await measureStreams({ streams: 200, seconds })
  const { earlyBytes, lateBytes } = seen
  const p99Ms = quantile(seen.addedMs, 0.99)
  const slowestMs = quantile(seen.refusedMs, 1)
  console.log(
    `p99 ${p99Ms.toFixed(1)} ms, refused within ${slowestMs.toFixed(1)} ms, ${Math.round(earlyBytes / 1e6)} → ${Math.round(lateBytes / 1e6)} MB`,
  )
  assert.equal(seen.broken, 0)
  assert.equal(seen.incomplete, 0)
  assert.equal(seen.unclear, 0)
  assert(lateBytes - earlyBytes < (seen.slowReaders + 20) * 1e6)
  assert(p99Ms <= 25, `a hundredth of all tokens came more than ${p99Ms.toFixed(1)} ms late`)
  assert(slowestMs <= 50, `a refusal took ${slowestMs.toFixed(1)} ms`)
})
