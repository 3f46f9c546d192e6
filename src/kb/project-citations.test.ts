// Whoever cites a finding, in a document, a message or a comment, cites one that exists.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { test } from 'node:test'
import { citationOf, citedIds } from './citations.ts'
import { parseKnowledge } from './parse-files.ts'
import { readKnowledgeFiles } from './read-files.ts'

const root = join(import.meta.dirname, '../..')
const notOurs = new Set(['.git', 'node_modules', '.runtime', 'dist', 'out', '.venv', '__pycache__'])
const texts = new Set([
  '',
  '.md',
  '.ts',
  '.tsx',
  '.js',
  '.py',
  '.toml',
  '.json',
  '.sh',
  '.html',
  '.css',
  '.yml',
  '.txt',
])

function* textFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (notOurs.has(entry.name)) continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* textFiles(path)
    else if (entry.isFile() && texts.has(extname(entry.name))) yield path
  }
}

function unknownCitations(files: Iterable<string>, known: ReadonlySet<number>): string[] {
  return [...files].flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        citedIds(line)
          .filter((id) => !known.has(id))
          .map((id) => `${relative(root, path)}:${index + 1}: ${citationOf(id)}`),
      ),
  )
}

const knowledge = parseKnowledge(readKnowledgeFiles(join(root, 'data/kb')).files)
const known = new Set(knowledge.findings.map((finding) => finding.id))

test('every finding that is cited anywhere in the project exists', () => {
  assert.deepEqual(unknownCitations(textFiles(root), known), [])
})

test('the search for citations sees the files it should, and would notice a wrong one', () => {
  const files = [...textFiles(root)].map((path) => relative(root, path))
  for (const expected of ['data/kb/topics/exo.md', 'src/kb/citations.ts', 'docs/kb.md', 'bin/kb'])
    assert.ok(files.includes(expected), expected)
  const topic = join(root, 'data/kb/topics/exo.md')
  const without341 = new Set([...known].filter((id) => id !== 341))
  assert.match(
    unknownCitations([topic], without341)[0] ?? '',
    /^data\/kb\/topics\/exo\.md:\d+: kb#341$/,
  )
})

test('citedIds() reads our form alone', () => {
  assert.deepEqual(citedIds('(kb#306, kb#413) kb#306. mlx#3467 #12 kb# kb#x'), [306, 413])
})
