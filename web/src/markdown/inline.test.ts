import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type Inline, parseInline } from './inline.ts'

/** A short notation for what was read, so that tests can be read too. */
function show(nodes: readonly Inline[]): string {
  return nodes.map(showNode).join('')
}

function showNode(node: Inline): string {
  if (node.kind === 'text') return node.text
  if (node.kind === 'break') return '⏎'
  if (node.kind === 'code') return `‹${node.text}›`
  if (node.kind === 'link') return `{${show(node.children)} → ${node.href}}`
  return `${node.kind}(${show(node.children)})`
}

const read = (text: string): string => show(parseInline(text))

test('parseInline() reads emphasis, nested and side by side', () => {
  assert.equal(read('a **b** and *c*'), 'a strong(b) and emphasis(c)')
  assert.equal(read('***both***'), 'strong(emphasis(both))')
  assert.equal(read('**bold *and italic***'), 'strong(bold emphasis(and italic))')
  assert.equal(read('*italic **and bold***'), 'emphasis(italic strong(and bold))')
  assert.equal(read('__b__ _i_ ~~s~~'), 'strong(b) emphasis(i) strike(s)')
})

test('parseInline() leaves alone what only looks like emphasis', () => {
  for (const text of ['2 * 3 * 4', 'snake_case_name', '**open', '* *', '~one~', '5*', '_', '****'])
    assert.equal(read(text), text)
})

test('parseInline() reads code before anything else', () => {
  assert.equal(read('`a*b*c` and `` ` ``'), '‹a*b*c› and ‹`›')
  assert.equal(read('**use `**` twice**'), 'strong(use ‹**› twice)')
  assert.equal(read('a ` tick'), 'a ` tick')
})

test('parseInline() makes links of safe addresses only', () => {
  assert.equal(read('[b](https://x.org/a_(b) "title")'), '{b → https://x.org/a_(b)}')
  assert.equal(read('![alt](https://x.org/i.png)'), '{alt → https://x.org/i.png}')
  assert.equal(read('[**b**](mailto:a@x.org)'), '{strong(b) → mailto:a@x.org}')
  for (const href of [
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc',
    '/local',
    '//x.org',
  ])
    assert.doesNotMatch(read(`[b](${href})`), /→/)
})

test('parseInline() finds bare addresses without the sentence around them', () => {
  assert.equal(read('See https://x.org/a.'), 'See {https://x.org/a → https://x.org/a}.')
  assert.equal(read('(https://x.org)'), '({https://x.org → https://x.org})')
  assert.equal(read('<https://x.org>'), '{https://x.org → https://x.org}')
  assert.equal(read('xhttps://x.org'), 'xhttps://x.org')
})

test('parseInline() keeps escapes and line ends', () => {
  assert.equal(read('\\*not\\* \\d'), '*not* \\d')
  assert.equal(read('one  \ntwo'), 'one⏎two')
})

test('parseInline() loses no letter and makes no unsafe link, whatever it is given', () => {
  const piece = fc.constantFrom(
    '*',
    '**',
    '_',
    '`',
    '``',
    '~~',
    '[',
    ']',
    '(',
    ')',
    '<',
    '>',
    '!',
    '\\',
    '\n',
    ' ',
    'a',
    'é',
    '🍎',
    'https://x.org',
    'javascript:',
  )
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''))
  const letters = (shown: string): string => shown.replaceAll(/[^aé🍎]/gu, '')
  const inside = (nodes: readonly Inline[]): string =>
    nodes
      .map((node) =>
        'children' in node ? inside(node.children) : node.kind === 'break' ? '' : node.text,
      )
      .join('')
  const hrefs = (nodes: readonly Inline[]): readonly string[] =>
    nodes.flatMap((node) =>
      'children' in node
        ? [...(node.kind === 'link' ? [node.href] : []), ...hrefs(node.children)]
        : [],
    )
  fc.assert(
    fc.property(text, (source) => {
      const nodes = parseInline(source)
      // A link's address is not shown; its letters may go.
      if (hrefs(nodes).length === 0) assert.equal(letters(inside(nodes)), letters(source))
      for (const href of hrefs(nodes)) assert.match(href, /^(https?:\/\/|mailto:)/)
    }),
    { numRuns: 2000 },
  )
})

test('parseInline() takes time in proportion to the text, even of the worst kind', () => {
  const worst = [
    '*a ',
    '**a',
    '_a ',
    '`'.repeat(3),
    '[',
    '[a](',
    '*a _b ',
    '![',
    '<h',
    'https://....',
    '***a** ',
    '~~a ',
    '``` `',
  ]
  for (const part of worst) {
    const text = part.repeat(Math.ceil(40_000 / part.length))
    const started = performance.now()
    parseInline(text)
    const tookMs = performance.now() - started
    // Quadratic readers need tens of seconds for this.
    assert(tookMs < 2000, `${JSON.stringify(part)} took ${Math.round(tookMs)} ms`)
  }
})
