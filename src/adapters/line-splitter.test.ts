import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { LineSplitter, LineTooLongError } from './line-splitter.ts'

test('LineSplitter gives the same lines however the bytes were cut, characters of many bytes too', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\n\r]/g, ''))
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.integer({ min: 1, max: 9 }), (lines, size) => {
      const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''))
      const splitter = new LineSplitter(10_000)
      const found: string[] = []
      for (let at = 0; at < bytes.length; at += size)
        found.push(...splitter.push(bytes.subarray(at, at + size)))
      assert.deepEqual(
        found,
        lines.map((text) => Buffer.from(text).toString()),
      )
    }),
  )
})

test('LineSplitter refuses a line without end before it fills the memory', () => {
  const splitter = new LineSplitter(100)
  splitter.push(Buffer.alloc(60, 0x61))
  assert.throws(() => splitter.push(Buffer.alloc(60, 0x61)), LineTooLongError)
})
