// Whoever cites a finding, in a document, a message or a comment, cites one that exists.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, relative } from 'node:path'
import { test } from 'node:test'
import { knownErrors } from '../core/doctor/rank-log.ts'
import { allChecks } from '../core/doctor/run-doctor.ts'
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

/** A copy of a source with one of its citations pointing nowhere. */
function planted(source: string, cited: string): { path: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-citations-'))
  const path = join(folder, 'planted.ts')
  const text = readFileSync(join(root, source), 'utf8')
  assert.ok(text.includes(cited), `${source} cites ${cited}`)
  writeFileSync(path, text.replace(cited, citationOf(987_654)))
  return { path, remove: () => rmSync(folder, { recursive: true }) }
}

test('the search for citations covers the doctor and the planner: a wrong id planted there is found', () => {
  for (const [source, cited] of [
    ['src/core/doctor/checks/address-checks.ts', 'kb#2016'],
    ['src/core/doctor/rank-log.ts', 'kb#2026'],
    ['src/core/plan/place/explain.ts', 'kb#2060'],
    ['src/core/plan/place/shortage.ts', 'kb#2088'],
  ] as const) {
    assert.ok([...textFiles(join(root, 'src/core'))].includes(join(root, source)), source)
    const copy = planted(source, cited)
    try {
      assert.match(
        unknownCitations([copy.path], known)[0] ?? '',
        new RegExp(`${citationOf(987_654)}$`),
        source,
      )
    } finally {
      copy.remove()
    }
  }
})

test('most checks of the doctor and every known error of a rank rest on a finding', () => {
  const bare = allChecks.filter((check) => check.cites.length === 0).map((check) => check.id)
  // Limits of containers, FileVault and drivers are not what the knowledge base is about.
  assert.deepEqual(bare, ['restart', 'linux-memory', 'linux-runtime', 'nvidia-driver'])
  assert.deepEqual(
    knownErrors.filter((error) => error.cites.length === 0),
    [],
  )
  for (const cite of [...allChecks, ...knownErrors].flatMap(({ cites }) => cites))
    assert.ok(known.has(citedIds(cite)[0] ?? 0), cite)
})
