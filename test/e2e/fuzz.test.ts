// A fuzzer over every route of our OpenAPI document: no 5xx, no hang, no growth, and the model answers after.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fuzz } from '../support/fuzz.ts'
import { startDaemon } from './daemon.ts'

const secondsShort = 12
const warmMs = 12_000
const secondsLong = 600

/** Resident memory, where the system tells it. */
function residentBytes(pid: number): number | null {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  } catch {
    return null
  }
}

test('nothing that fits our OpenAPI document badly breaks the daemon', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-fuzz-'))
  const model = join(folder, 'fuzzed')
  mkdirSync(model)
  writeFileSync(join(model, 'script.json'), JSON.stringify({ tokens: 12, tokensPerSecond: 2000 }))
  const daemon = await startDaemon({ args: ['--model', model] })
  try {
    const forMs = (process.env['BUSHEL_LONG'] === '1' ? secondsLong : secondsShort) * 1000
    const seed = Number(process.env['BUSHEL_FUZZ_SEED'] ?? 1)
    // A heap grows to its working size first.
    await fuzz(daemon.url, { model: 'fuzzed', forMs: warmMs, seed: seed + 1 })
    const warmBytes = residentBytes(daemon.pid)
    const { requests, statuses } = await fuzz(daemon.url, { model: 'fuzzed', forMs, seed })
    const grown = (residentBytes(daemon.pid) ?? 0) / (warmBytes ?? 1)
    const listed = [...statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${status}: ${count}`)
    t.diagnostic(`${requests} requests (${listed.join(', ')}), memory ×${grown.toFixed(2)}`)
    assert.ok(requests > 200)
    assert.ok((statuses.get(200) ?? 0) > requests / 50, 'hardly anything got as far as an answer')
    if (warmBytes !== null) assert.ok(grown < 1.5, `memory grew ${grown.toFixed(2)} times`)
    const body = JSON.stringify({
      model: 'fuzzed',
      messages: [{ role: 'user', content: 'Still there?' }],
    })
    const response = await fetch(`${daemon.url}/v1/chat/completions`, { method: 'POST', body })
    assert.equal(response.status, 200)
  } finally {
    await daemon.stop()
    rmSync(folder, { recursive: true })
  }
})
