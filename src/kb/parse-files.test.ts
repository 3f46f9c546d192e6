import assert from 'node:assert/strict'
import { test } from 'node:test'
import { citationOf } from './citations.ts'
import { parseFiles } from './parse-files.ts'
import type { KnowledgeFolder } from './read-files.ts'

const head = (changes: Record<string, string | undefined> = {}): string[] =>
  Object.entries({
    id: '7',
    claim: '"Cables are short"',
    status: '"stands"',
    confidence: '"high"',
    basis: '"measured"',
    date: '"2026-01"',
    tags: '["cabling"]',
    sources: '["a test"]',
    ...changes,
  }).flatMap(([key, value]) => (value === undefined ? [] : [`${key} = ${value}`]))

const finding = (lines: readonly string[], text = 'Seen.'): string =>
  ['+++', ...lines, '+++', '', text].join('\n')

const problems = (
  content: string,
  options: { path?: string; folder?: KnowledgeFolder } = {},
): string[] =>
  parseFiles([
    {
      folder: options.folder ?? 'findings',
      path: options.path ?? 'data/kb/findings/0007-cables.md',
      content,
    },
  ]).problems.map(({ file, line, message }) => `${file}:${line}: ${message}`)

test('parseFiles() reads a finding with its defaults', () => {
  const { findings } = parseFiles([
    {
      folder: 'findings',
      path: 'data/kb/findings/0007-cables.md',
      content: finding(head({ see_also: '[8]' }), 'First.\n\nSecond.'),
    },
  ])
  assert.deepEqual(findings[0]?.thing, {
    id: 7,
    claim: 'Cables are short',
    status: 'stands',
    confidence: 'high',
    basis: 'measured',
    date: '2026-01',
    tags: ['cabling'],
    sources: ['a test'],
    evidence: 'First.\n\nSecond.',
    relations: { supports: [], contradicts: [], supersedes: [], seeAlso: [8] },
  })
})

test('parseFiles() names file and line of every mistake in a finding', () => {
  const at = 'data/kb/findings/0007-cables.md'
  const cases: [content: string, complaint: RegExp][] = [
    ['no head at all', /:1: must begin with a line "\+\+\+"/],
    ['+++\nid = 7\n', /:3: the head is not closed/],
    [finding(head({ claim: '"unclosed' })), /:3: the head is not valid TOML/],
    [finding(head({ confidence: '"sure"' })), /:5: "confidence": Invalid option.*verified/],
    [finding(head({ status: undefined })), /:1: "status": Invalid option/],
    [finding(head({ date: '"last week"' })), /:7: "date": must be YYYY, YYYY-MM/],
    [finding(head({ tags: '["Big Cable"]' })), /:8: "tags\.0": must be lower-case words/],
    [finding(head({ colour: '"red"' })), /:10: unknown key "colour"/],
    [finding(head({ status: '"disputed"' })), /:4: "status": .*must say why in "correction"/],
    [finding(head({ correction: '"no"' })), /:10: "correction": a finding that stands has no/],
    [finding(head(), ''), /:11: the evidence below the head is missing/],
  ]
  for (const [content, complaint] of cases) {
    const [first] = problems(content)
    assert.match(first ?? 'no problem', complaint)
    assert.equal(first?.slice(0, at.length), at)
  }
})

test('parseFiles() wants the id of a finding in the name of its file', () => {
  assert.deepEqual(problems(finding(head()), { path: 'data/kb/findings/0008-cables.md' }), [
    "data/kb/findings/0008-cables.md:2: the id is 7, so the file's name must begin with 0007-",
  ])
})

test('parseFiles() points into the right table of a conflict', () => {
  const content = [
    '+++',
    'name = "length"',
    'title = "How long"',
    'use = "1 m"',
    'stands = [7]',
    '[[claims]]',
    'id = 7',
    'says = "1 m"',
    '[[claims]]',
    'id = "eight"',
    'says = "2 m"',
    '+++',
    'Because.',
  ].join('\n')
  const [first] = problems(content, { folder: 'conflicts', path: 'data/kb/conflicts/length.md' })
  assert.match(first ?? '', /^data\/kb\/conflicts\/length\.md:10: "claims\.1\.id": /)
})

const topicHead = [
  '+++',
  'name = "cables"',
  'title = "Cables"',
  'summary = "All about them."',
  'tags = ["cabling"]',
  '[[figures]]',
  'what = "Length"',
  'value = "1 m"',
  'cites = [7]',
  '+++',
]

test('parseFiles() reads the sections of a topic', () => {
  const citation = citationOf(7)
  const text = [
    '## What to know',
    'Much.',
    '## Pitfalls',
    '- They are short',
    '  and stiff.',
    '- They cost.',
    '## Questions',
    '### How long?',
    `One metre (${citation}).`,
    '## More',
    'End.',
  ]
  const { topics, problems: none } = parseFiles([
    {
      folder: 'topics',
      path: 'data/kb/topics/cables.md',
      content: [...topicHead, ...text].join('\n'),
    },
  ])
  assert.deepEqual(none, [])
  const topic = topics[0]?.thing
  assert.equal(topic?.know, 'Much.')
  assert.deepEqual(topic?.pitfalls, ['They are short and stiff.', 'They cost.'])
  assert.deepEqual(topic?.questions, [
    { question: 'How long?', answer: `One metre (${citation}).`, cites: [7] },
  ])
  assert.deepEqual(topic?.more, [{ heading: 'More', text: 'End.' }])
})

test('parseFiles() refuses a topic whose answer cites nothing or whose section is missing', () => {
  const path = 'data/kb/topics/cables.md'
  const bare = [
    '## What to know',
    'Much.',
    '## Pitfalls',
    '- One.',
    '## Questions',
    '### How long?',
    'Long.',
  ]
  assert.match(
    problems([...topicHead, ...bare].join('\n'), { folder: 'topics', path })[0] ?? '',
    /^data\/kb\/topics\/cables\.md:16: the answer to "How long\?" cites no finding/,
  )
  assert.match(
    problems([...topicHead, ...bare.slice(0, 2)].join('\n'), { folder: 'topics', path })[0] ?? '',
    /the section "## Pitfalls" is missing/,
  )
})
