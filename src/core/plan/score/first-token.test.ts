import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstTokenSeconds } from './first-token.ts'

test('firstTokenSeconds() is the median of prompts of about that length, scaled to it', () => {
  const reads = [
    { tokens: 512, seconds: 1 },
    { tokens: 1024, seconds: 2.2 },
    { tokens: 2048, seconds: 3 },
  ]
  assert.equal(firstTokenSeconds(reads, 1024), 2)
})

test('firstTokenSeconds() leaves greetings and books out', () => {
  const reads = [
    { tokens: 12, seconds: 0.2 },
    { tokens: 100_000, seconds: 900 },
  ]
  assert.equal(firstTokenSeconds(reads, 1024), null)
  assert.equal(firstTokenSeconds([...reads, { tokens: 1024, seconds: 2 }], 1024), 2)
})
