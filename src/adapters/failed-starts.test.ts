import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { FailedStarts } from './failed-starts.ts'

test('FailedStarts counts over restarts of the daemon, and forgets when the machine restarts', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-starts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'state', 'failed-starts.json')
  const booted = (bootMs: number): FailedStarts =>
    new FailedStarts({ path, bootMs: () => bootMs, warn: assert.fail })
  const first = booted(1_000_000)
  assert.equal(first.count(), 0)
  first.add()
  first.add()
  assert.equal(first.count(), 2)
  assert.equal(booted(1_004_000).count(), 2, 'a clock that was set right is the same boot')
  const restarted = booted(9_000_000)
  assert.equal(restarted.count(), 0)
  restarted.add()
  assert.equal(restarted.count(), 1)
})

test('FailedStarts counts nothing that it cannot read, and says what it cannot write', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-starts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'failed-starts.json')
  writeFileSync(path, '{"failed": "many"}')
  const said: string[] = []
  const options = { bootMs: () => 0, warn: (text: string) => void said.push(text) }
  assert.equal(new FailedStarts({ path, ...options }).count(), 0)
  new FailedStarts({ path: join(path, 'below.json'), ...options }).add()
  assert.match(said.join(), /cannot keep count of failed starts/)
})
