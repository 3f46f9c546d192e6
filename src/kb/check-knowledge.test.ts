import assert from 'node:assert/strict'
import { test } from 'node:test'
import { citationOf } from './citations.ts'
import { checkKnowledge } from './check-knowledge.ts'
import { parseFiles } from './parse-files.ts'
import type { KnowledgeFile } from './read-files.ts'

const finding = (id: number, extra = '', tag = 'cabling'): KnowledgeFile => ({
  folder: 'findings',
  path: `data/kb/findings/000${id}-one.md`,
  content: `+++
id = ${id}
claim = "Claim ${id}"
status = "stands"
confidence = "high"
basis = "measured"
date = "2026"
tags = ["${tag}"]
sources = ["a test"]
${extra}
+++
Seen.
`,
})

const topic: KnowledgeFile = {
  folder: 'topics',
  path: 'data/kb/topics/cables.md',
  content: `+++
name = "cables"
title = "Cables"
summary = "Short."
tags = ["cabling"]
[[figures]]
what = "Length"
value = "1 m"
cites = [1]
+++
## What to know
x
## Pitfalls
- y
## Questions
`,
}

const conflict = (ids: readonly number[]): KnowledgeFile => ({
  folder: 'conflicts',
  path: 'data/kb/conflicts/length.md',
  content: `+++
name = "length"
title = "How long"
use = "1 m"
stands = [${ids[0]}]
${ids.map((id) => `[[claims]]\nid = ${id}\nsays = "x"`).join('\n')}
+++
Because.
`,
})

function complaints(files: readonly KnowledgeFile[]): string[] {
  const parsed = parseFiles(files)
  assert.deepEqual(parsed.problems, [])
  return checkKnowledge(parsed).map(({ file, line, message }) => `${file}:${line}: ${message}`)
}

test('checkKnowledge() is content with findings that fit together', () => {
  const files = [finding(1, 'contradicts = [2]'), finding(2), conflict([1, 2]), topic]
  assert.deepEqual(complaints(files), [])
})

test('checkKnowledge() refuses a relation to a finding that does not exist, or to itself', () => {
  assert.deepEqual(complaints([finding(1, 'see_also = [9]'), topic]), [
    'data/kb/findings/0001-one.md:10: "see_also": there is no finding 9',
  ])
  assert.match(complaints([finding(1, 'supports = [1]'), topic])[0] ?? '', /no relation to itself/)
})

test('checkKnowledge() refuses a contradiction that no conflict settles', () => {
  assert.deepEqual(complaints([finding(1, 'contradicts = [2]'), finding(2), topic]), [
    'data/kb/findings/0001-one.md:10: contradicts 2, but no file in conflicts/ names both and says which stands',
  ])
})

test('checkKnowledge() refuses an id that two files use', () => {
  const twin = { ...finding(1), path: 'data/kb/findings/0001-two.md' }
  assert.deepEqual(complaints([finding(1), twin, topic]), [
    'data/kb/findings/0001-two.md:2: the id 1 is already taken by data/kb/findings/0001-one.md',
  ])
})

test('checkKnowledge() refuses a conflict or a topic that names an unknown finding', () => {
  assert.match(
    complaints([finding(1), conflict([1, 5]), topic])[0] ?? '',
    /length\.md:10: there is no finding 5/,
  )
  const citation = citationOf(77)
  const wrong = { ...topic, content: topic.content.replace('\nx\n', `\nx ${citation}\n`) }
  assert.deepEqual(complaints([finding(1), wrong]), [
    'data/kb/topics/cables.md:12: there is no finding 77',
  ])
})

test('checkKnowledge() refuses a finding that no topic shows', () => {
  assert.match(
    complaints([finding(1), finding(2, '', 'kites'), topic])[0] ?? '',
    /0002-one\.md:8: no topic has one of these tags: kites/,
  )
})
