import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { pathFault } from './paths.ts'

test('pathFault() lets plain paths below the folder pass', () => {
  for (const path of ['a.py', 'deep/er/data.bin', 'with space/ä.txt', '..a/b..'])
    assert.equal(pathFault(path), null, path)
})

test('pathFault() refuses whatever could leave the folder', () => {
  for (const path of [
    '',
    '/etc/passwd',
    '../x',
    'a/../../x',
    'a/..',
    './a',
    'a//b',
    'a\\..\\b',
    'a\0b',
  ])
    assert.notEqual(pathFault(path), null, path)
})

test('pathFault() agrees with what resolving a path would do', () => {
  const step = fc.constantFrom('..', '.', '', 'a', 'b c', '...')
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
      const path = steps.join('/')
      if (pathFault(path) !== null) return
      const { pathname } = new URL(encodeURI(path), 'file:///home/launch/')
      assert.ok(decodeURI(pathname).startsWith('/home/launch/'), path)
    }),
  )
})
