import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import * as fc from 'fast-check'
import { a, rosterOf, wishes, deploymentOf, b } from '../../test/support/machine-states.ts'
import type { JournalSnapshot } from '../ports/journal.ts'
import { parseJournal, renderJournal } from '../wire/journal-file.ts'
import { DiskJournal, JournalUnusableError } from './disk-journal.ts'

let root = ''
let folder = ''
before(() => {
  root = mkdtempSync(join(tmpdir(), 'bushel-journal-'))
})
after(() => rmSync(root, { recursive: true }))
beforeEach(() => {
  folder = mkdtempSync(join(root, 'state-'))
})

const older: JournalSnapshot = {
  registers: rosterOf(a),
  epochSeen: { counter: 3, machine: a },
  incarnation: 4,
}
const newer: JournalSnapshot = {
  registers: new Map([...rosterOf(a, b), ...wishes(deploymentOf())]),
  epochSeen: { counter: 5, machine: b },
  incarnation: 6,
}

function save(snapshot: JournalSnapshot): Promise<void> {
  return new Promise((resolve, reject) => {
    new DiskJournal(folder).save(snapshot, (error) => (error === null ? resolve() : reject(error)))
  })
}

const file = (): string => join(folder, 'journal.json')

test('DiskJournal gives back what was saved, and nothing on the first day', async () => {
  assert.deepEqual(new DiskJournal(folder).load(), { content: null, warning: null })
  await save(older)
  await save(newer)
  assert.deepEqual(new DiskJournal(folder).load(), { content: newer, warning: null })
})

test('DiskJournal falls back to the snapshot before, wherever the newest was cut', async () => {
  await save(older)
  await save(newer)
  const whole = readFileSync(file())
  for (let length = 0; length < whole.length - 1; length++) {
    writeFileSync(file(), whole.subarray(0, length))
    const { content, warning } = new DiskJournal(folder).load()
    assert.deepEqual(content, older, `cut at ${length}`)
    assert.match(warning ?? '', /kept as .*broken.* the snapshot before it is used/)
    for (const name of readdirSync(folder)) if (name.includes('broken')) rmSync(join(folder, name))
  }
})

test('DiskJournal goes on from the fallback though the daemon dies before its next write', async () => {
  await save(older)
  await save(newer)
  writeFileSync(file(), 'torn')
  assert.deepEqual(new DiskJournal(folder).load().content, older)
  assert.deepEqual(new DiskJournal(folder).load(), { content: older, warning: null })
})

test('DiskJournal keeps a file that cannot be read, and starts without it when there is no other', async () => {
  await save(older)
  writeFileSync(file(), '{"half":')
  const { content, warning } = new DiskJournal(folder).load()
  assert.equal(content, null)
  assert.match(warning ?? '', /starting without desired state/)
  const [kept] = readdirSync(folder).filter((name) => name.includes('broken'))
  assert.equal(readFileSync(join(folder, kept ?? ''), 'utf8'), '{"half":')
  assert.deepEqual(new DiskJournal(folder).load(), { content: null, warning: null })
})

test('DiskJournal refuses a journal of a newer Bushel and leaves it as it is', async () => {
  await save(older)
  const text = readFileSync(file(), 'utf8').replace('"format": 1', '"format": 2')
  writeFileSync(file(), text)
  assert.throws(() => new DiskJournal(folder).load(), JournalUnusableError)
  assert.equal(readFileSync(file(), 'utf8'), text)
})

test('parseJournal() reads back exactly what was written, or says that it cannot', () => {
  const text = renderJournal(newer)
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.nat(255), (at, code) => {
      const spoilt = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1)
      const parsed = parseJournal(spoilt)
      assert.ok(['read', 'unreadable', 'newer-format'].includes(parsed.kind))
      // Whatever is read as whole can be written and read again: nothing half-understood is kept.
      if (parsed.kind === 'read')
        assert.deepEqual(parseJournal(renderJournal(parsed.content)), parsed)
    }),
    { numRuns: 500 },
  )
})

test('parseJournal() survives any text and any JSON', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.notEqual(parseJournal(text).kind, 'read')
    }),
  )
})
