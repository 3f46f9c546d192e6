// Opens the knowledge base: from the copy in the cache when the files have not changed, otherwise
// built from the files. Without a writable cache it lives in memory and works all the same.
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { buildIndex, indexLayout } from './index-db.ts'
import { KnowledgeBase } from './knowledge-base.ts'
import { type KnowledgeFiles, readKnowledgeFiles } from './read-files.ts'

/** Copies of other versions that are kept: two checkouts that share a home do not fight. */
const cachedCopiesMax = 4

export interface OpenOptions {
  /** The folder with findings/, conflicts/ and topics/. */
  readonly dataDir: string
  /** Where the built index may be kept; null keeps it in memory. */
  readonly cacheDir: string | null
}

export async function openKnowledgeBase(options: OpenOptions): Promise<KnowledgeBase> {
  const read = readKnowledgeFiles(options.dataDir)
  const copy = options.cacheDir === null ? null : join(options.cacheDir, copyName(read.digest))
  const cached = copy === null ? null : openCopy(copy, read.digest)
  if (cached !== null) return new KnowledgeBase(cached, { digest: read.digest, index: copy })
  const db = await build(read)
  const kept = copy !== null && options.cacheDir !== null && keepCopy(db, options.cacheDir, copy)
  return new KnowledgeBase(db, { digest: read.digest, index: kept ? copy : null })
}

async function build(read: KnowledgeFiles): Promise<DatabaseSync> {
  // Parsing needs the schema library; a start from the cache does not pay for it.
  const { parseKnowledge } = await import('./parse-files.ts')
  return buildIndex(parseKnowledge(read.files), read.digest)
}

function copyName(digest: string): string {
  return `index-${indexLayout}-${digest.slice(0, 24)}.sqlite`
}

/** The copy, if it is there, whole and of these files; a damaged one is as good as none. */
function openCopy(path: string, digest: string): DatabaseSync | null {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null
  let db: DatabaseSync | null = null
  try {
    db = new DatabaseSync(path, { readOnly: true })
    const found = db.prepare("select value from meta where key = 'digest'").get()
    const check = db.prepare('pragma quick_check(1)').get()
    if (found?.['value'] === digest && check?.['quick_check'] === 'ok') return db
  } catch {
    // Not a database, or cut off: rebuilt by the caller.
  }
  db?.close()
  return null
}

/** Writes the copy under a name of its own first, so that no one ever reads half of it. */
function keepCopy(db: DatabaseSync, cacheDir: string, path: string): boolean {
  const draft = `${path}.${process.pid}.draft`
  try {
    mkdirSync(cacheDir, { recursive: true })
    rmSync(draft, { force: true })
    db.prepare('vacuum into ?').run(draft)
    renameSync(draft, path)
    dropOldCopies(cacheDir)
    return true
  } catch {
    // A read-only home, a full disk: the copy in memory serves just as well.
    discard(draft)
    return false
  }
}

function discard(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Its folder is not one, or is not ours to change: then nothing of it was written either.
  }
}

function dropOldCopies(cacheDir: string): void {
  const copies = readdirSync(cacheDir)
    .filter((name) => /^index-[0-9a-f]+-[0-9a-f]+\.sqlite$/.test(name))
    .map((name) => ({ name, writtenMs: statSync(join(cacheDir, name)).mtimeMs }))
    .sort((a, b) => b.writtenMs - a.writtenMs)
  for (const { name } of copies.slice(cachedCopiesMax))
    rmSync(join(cacheDir, name), { force: true })
}
