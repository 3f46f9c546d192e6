import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { partsOf, readScriptFolder } from './script-folder.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bushel-folder-'))
  writeFileSync(join(folder, 'x.py'), 'print(1)\n')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('readScriptFolder() takes what lies beside the script, but nothing hidden or made by tools', async () => {
  mkdirSync(join(folder, 'lib'))
  writeFileSync(join(folder, 'lib', 'run.sh'), 'true\n', { mode: 0o755 })
  writeFileSync(join(folder, 'empty'), '')
  writeFileSync(join(folder, '.env'), 'SECRET=1\n')
  for (const name of ['.git', '__pycache__', 'node_modules']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'x'), 'x')
  }
  const found = await readScriptFolder(join(folder, 'x.py'))
  assert.equal(found.script, 'x.py')
  assert.deepEqual(found.files, [
    { path: 'empty', executable: false },
    { path: 'lib/run.sh', executable: true },
    { path: 'x.py', executable: false },
  ])
  const parts = []
  for await (const part of partsOf(found)) parts.push([part.path, part.data])
  assert.deepEqual(parts, [
    ['empty', ''],
    ['lib/run.sh', Buffer.from('true\n').toString('base64')],
    ['x.py', Buffer.from('print(1)\n').toString('base64')],
  ])
})

test('readScriptFolder() refuses symbolic links, in the folder and as the script', async () => {
  symlinkSync('/etc/hosts', join(folder, 'hosts'))
  await assert.rejects(readScriptFolder(join(folder, 'x.py')), /hosts is a symbolic link/)
  rmSync(join(folder, 'hosts'))
  symlinkSync(join(folder, 'x.py'), join(folder, 'y.py'))
  await assert.rejects(readScriptFolder(join(folder, 'y.py')), /name the script itself/)
})

test('readScriptFolder() refuses more than 64 MB, a missing script and a folder', async () => {
  writeFileSync(join(folder, 'data'), '')
  truncateSync(join(folder, 'data'), 64e6 - 9)
  assert.equal((await readScriptFolder(join(folder, 'x.py'))).bytes, 64e6)
  truncateSync(join(folder, 'data'), 64e6)
  await assert.rejects(readScriptFolder(join(folder, 'x.py')), /holds more than 64/)
  await assert.rejects(readScriptFolder(join(folder, 'none.py')), /There is no script/)
  await assert.rejects(readScriptFolder(folder), /is no file/)
})
