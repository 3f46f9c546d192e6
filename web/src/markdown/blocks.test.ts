import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type Block, type BlockContent, parseBlocks } from './blocks.ts'

/** Without the source, which other tests look at. */
function bare(blocks: readonly Block[]): readonly unknown[] {
  return blocks.map(({ source, ...content }) => {
    assert.notEqual(source.trim(), '')
    if (content.kind === 'list') return { ...content, items: content.items.map(bare) }
    if (content.kind === 'quote') return { ...content, blocks: bare(content.blocks) }
    return content
  })
}

const read = (...lines: string[]): readonly unknown[] => bare(parseBlocks(lines.join('\n')))
const paragraph = (text: string): BlockContent => ({ kind: 'paragraph', text })

test('parseBlocks() reads paragraphs, headings and rules', () => {
  assert.deepEqual(read('# Title #', 'one', 'two', '', '---', 'three', '#hash'), [
    { kind: 'heading', level: 1, text: 'Title' },
    paragraph('one\ntwo'),
    { kind: 'rule' },
    paragraph('three\n#hash'),
  ])
})

test('parseBlocks() keeps code as it is, whatever it looks like', () => {
  assert.deepEqual(
    read('```python', 'def f():', '    # not a title', '', '- no list', '```', 'after'),
    [
      {
        kind: 'code',
        language: 'python',
        text: 'def f():\n    # not a title\n\n- no list',
        isOpen: false,
      },
      paragraph('after'),
    ],
  )
  assert.deepEqual(read('~~~', '```', '~~~'), [
    { kind: 'code', language: '', text: '```', isOpen: false },
  ])
})

test('parseBlocks() shows code whose end has not arrived yet as open', () => {
  assert.deepEqual(read('```js', 'let a'), [
    { kind: 'code', language: 'js', text: 'let a', isOpen: true },
  ])
})

test('parseBlocks() takes three ticks within a line for inline code', () => {
  assert.deepEqual(read('```not a fence``` here'), [paragraph('```not a fence``` here')])
})

test('parseBlocks() reads lists with what belongs to their items', () => {
  const [list] = read(
    '1. one',
    '   - inner',
    '   - other',
    '',
    '2. two',
    '   more',
    '',
    '   ```sh',
    '   ls',
    '   ```',
    'after',
  )
  assert.deepEqual(list, {
    kind: 'list',
    start: 1,
    items: [
      [
        paragraph('one'),
        { kind: 'list', start: null, items: [[paragraph('inner')], [paragraph('other')]] },
      ],
      [paragraph('two\nmore'), { kind: 'code', language: 'sh', text: 'ls', isOpen: false }],
    ],
  })
})

test('parseBlocks() keeps code in its item, however the model indents it', () => {
  const [list] = parseBlocks('1. one\n   ```sh\nls\n\nps\n   ```\n2. two')
  assert(list?.kind === 'list')
  assert.deepEqual(
    list.items.map((blocks) => blocks.map(({ kind }) => kind)),
    [['paragraph', 'code'], ['paragraph']],
  )
})

test('parseBlocks() forgives items indented by two or four blanks', () => {
  for (const indent of ['  ', '    ']) {
    const [list] = parseBlocks(`1. one\n${indent}- inner`)
    assert(list?.kind === 'list')
    assert.deepEqual(
      list.items[0]?.map(({ kind }) => kind),
      ['paragraph', 'list'],
    )
  }
})

test('parseBlocks() goes on counting where a list was interrupted', () => {
  const [, , list] = parseBlocks('1. one\n\ntext\n\n2. two')
  assert(list?.kind === 'list')
  assert.equal(list.start, 2)
})

test('parseBlocks() keeps two kinds of lists apart', () => {
  assert.deepEqual(read('- a', '1. b').length, 2)
})

test('parseBlocks() reads quotes with blocks inside', () => {
  assert.deepEqual(read('> # Q', '> text', 'after'), [
    { kind: 'quote', blocks: [{ kind: 'heading', level: 1, text: 'Q' }, paragraph('text')] },
    paragraph('after'),
  ])
})

test('parseBlocks() reads tables with their alignment, and fills short rows', () => {
  assert.deepEqual(
    read('Intro', '| a | b \\| c | d |', '|:--|:-:|--:|', '| 1 | 2 | 3 |', '| 4 |', '', 'after'),
    [
      paragraph('Intro'),
      {
        kind: 'table',
        aligns: ['left', 'center', 'right'],
        head: ['a', 'b | c', 'd'],
        rows: [
          ['1', '2', '3'],
          ['4', '', ''],
        ],
      },
      paragraph('after'),
    ],
  )
})

test('parseBlocks() takes a line with a bar for text when no row of dashes follows', () => {
  assert.deepEqual(read('a | b', 'c | d'), [paragraph('a | b\nc | d')])
  assert.deepEqual(read('a | b', '---'), [paragraph('a | b'), { kind: 'rule' }])
})

test('parseBlocks() changes no finished block while an answer grows', () => {
  const text =
    '# T\n\nOne *two*.\n\n```js\nlet a\n```\n\n1. a\n2. b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.'
  let before: readonly Block[] = []
  for (let end = 1; end <= text.length; end++) {
    const blocks = parseBlocks(text.slice(0, end))
    // Only the last block may change, and what was one paragraph may become two blocks.
    const stable = before.slice(0, -2)
    assert.deepEqual(blocks.slice(0, stable.length), stable, `at ${end}`)
    before = blocks
  }
})

test('parseBlocks() ends, throws nothing and keeps every word, whatever it is given', () => {
  const piece = fc.constantFrom(
    '- ',
    '1. ',
    '> ',
    '```',
    '~~~',
    '# ',
    '|',
    '|-|',
    '---',
    '    ',
    '  ',
    '\n',
    '\n\n',
    '\t',
    'word',
    '\r\n',
  )
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(text, (source) => {
      const count = (shown: string): number => shown.split('word').length - 1
      const sources = parseBlocks(source).map((block) => block.source)
      assert.equal(count(sources.join('\n')), count(source))
    }),
    { numRuns: 2000 },
  )
})

test('parseBlocks() takes time in proportion to the text, even of the worst kind', () => {
  for (const part of [
    '- ',
    '> ',
    '>',
    '1. a\n',
    '|-',
    '  - a\n',
    '```\n',
    '# '.padEnd(50),
    'a|b\n',
    '- - ',
  ]) {
    const text = part.repeat(Math.ceil(40_000 / part.length))
    const started = performance.now()
    parseBlocks(text)
    const tookMs = performance.now() - started
    assert(tookMs < 2000, `${JSON.stringify(part)} took ${Math.round(tookMs)} ms`)
  }
})
