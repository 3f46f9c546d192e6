import assert from 'node:assert/strict'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { KnowledgeBase } from './knowledge-base.ts'
import { openKnowledgeBase } from './open.ts'
import { KnowledgeFilesError } from './problems.ts'

const shipped = join(import.meta.dirname, '../../data/kb')
const scratch = mkdtempSync(join(tmpdir(), 'bushel-kb-'))
after(() => rmSync(scratch, { recursive: true, force: true }))

let folders = 0
function folder(): string {
  folders += 1
  const path = join(scratch, String(folders))
  mkdirSync(path)
  return path
}

/** A copy of the shipped files that a test may spoil. */
function ownData(): string {
  const dataDir = folder()
  cpSync(shipped, dataDir, { recursive: true })
  return dataDir
}

const top = (kb: KnowledgeBase): number | undefined =>
  kb.search('what is jaccl').hits[0]?.finding.id

test('openKnowledgeBase() builds once and starts from its copy after that', async () => {
  const cacheDir = join(folder(), 'deep', 'kb')
  const first = await openKnowledgeBase({ dataDir: shipped, cacheDir })
  const index = first.stats().index
  assert.ok(index !== null && readdirSync(cacheDir).length === 1)
  const written = readFileSync(index)
  const expected = top(first)
  first.close()

  const second = await openKnowledgeBase({ dataDir: shipped, cacheDir })
  assert.equal(second.stats().index, index)
  assert.equal(top(second), expected)
  second.close()
  assert.deepEqual(readFileSync(index), written)
})

test('openKnowledgeBase() builds anew when a file has changed', async () => {
  const dataDir = ownData()
  const cacheDir = folder()
  const before = await openKnowledgeBase({ dataDir, cacheDir })
  before.close()
  const file = join(dataDir, 'findings/0306-rdma-throughput-and-latency.md')
  writeFileSync(file, readFileSync(file, 'utf8').replace('claim = "', 'claim = "Xylophone '))
  const later = await openKnowledgeBase({ dataDir, cacheDir })
  assert.equal(later.search('xylophone').hits[0]?.finding.id, 306)
  later.close()
  assert.equal(readdirSync(cacheDir).length, 2)
})

test('openKnowledgeBase() replaces a damaged copy', async () => {
  for (const damage of ['cut', 'scribbled', 'emptied'] as const) {
    const cacheDir = folder()
    const first = await openKnowledgeBase({ dataDir: shipped, cacheDir })
    const index = first.stats().index ?? ''
    first.close()
    const size = readFileSync(index).length
    if (damage === 'cut') truncateSync(index, Math.floor(size / 2))
    if (damage === 'emptied') truncateSync(index, 0)
    if (damage === 'scribbled') writeFileSync(index, 'this is not a database')
    const second = await openKnowledgeBase({ dataDir: shipped, cacheDir })
    assert.ok(second.search('rdma').hits.length > 0, damage)
    second.close()
    assert.equal(readFileSync(index).length, size, damage)
  }
})

test('openKnowledgeBase() works in memory when the cache cannot be written', async () => {
  const blocked = join(folder(), 'a-file')
  writeFileSync(blocked, '')
  const kb = await openKnowledgeBase({ dataDir: shipped, cacheDir: join(blocked, 'kb') })
  assert.equal(kb.stats().index, null)
  assert.ok(kb.search('rdma').hits.length > 0)
  kb.close()
})

test('openKnowledgeBase() keeps a few copies of other versions and no more', async () => {
  const dataDir = ownData()
  const cacheDir = folder()
  const file = join(dataDir, 'findings/0306-rdma-throughput-and-latency.md')
  const text = readFileSync(file, 'utf8')
  for (let version = 0; version < 6; version += 1) {
    writeFileSync(file, `${text}\nVersion ${version}.\n`)
    const kb = await openKnowledgeBase({ dataDir, cacheDir })
    kb.close()
  }
  assert.equal(readdirSync(cacheDir).length, 4)
})

test('openKnowledgeBase() names file and line of a malformed finding', async () => {
  const dataDir = ownData()
  const file = join(dataDir, 'findings/0306-rdma-throughput-and-latency.md')
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace('confidence = "medium"', 'confidence = "mid"'),
  )
  await assert.rejects(openKnowledgeBase({ dataDir, cacheDir: null }), (error: unknown) => {
    assert.ok(error instanceof KnowledgeFilesError)
    assert.match(
      error.message,
      /data\/kb\/findings\/0306-rdma-throughput-and-latency\.md:5: "confidence": Invalid option/,
    )
    return true
  })
})

test('openKnowledgeBase() says which folder is missing', async () => {
  await assert.rejects(
    openKnowledgeBase({ dataDir: join(scratch, 'nowhere'), cacheDir: null }),
    /nowhere\/findings:1: this folder cannot be listed/,
  )
})
