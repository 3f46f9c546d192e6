// The doctor as a person meets it when there is nothing to take back, or the record of changes is damaged.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Command } from 'commander'
import { UserError } from '../command.ts'
import { register } from './doctor.ts'

async function undo(home: string): Promise<readonly string[]> {
  const notes: string[] = []
  const command = new Command('doctor').option('--json').exitOverride()
  register(command, {
    env: { BUSHEL_HOME: home },
    programDir: join(import.meta.dirname, '..', '..', '..'),
    out: {
      result: () => undefined,
      json: () => undefined,
      note: (text) => void notes.push(text),
      isTty: false,
    },
  })
  await command.parseAsync(['--undo'], { from: 'user' })
  return notes
}

test('bushel doctor --undo says that there is nothing to take back', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'bushel-doctor-'))
  t.after(() => rmSync(home, { recursive: true }))
  assert.match((await undo(home)).join('\n'), /There is nothing to take back/)
})

test('bushel doctor --undo names a record of changes that it cannot read', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'bushel-doctor-'))
  t.after(() => rmSync(home, { recursive: true }))
  mkdirSync(join(home, 'doctor'))
  writeFileSync(join(home, 'doctor', 'changes.json'), '{')
  await assert.rejects(undo(home), (error) => {
    assert.ok(error instanceof UserError)
    assert.match(error.message, /changes\.json" is not a record of changes; move it away/)
    return true
  })
})
