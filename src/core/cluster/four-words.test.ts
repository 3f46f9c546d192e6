import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { fourWords } from './four-words.ts'

const byte = (value: number): string => value.toString(16).padStart(2, '0')

test('fourWords() has another word for each of the 256 values', () => {
  const words = Array.from(
    { length: 256 },
    (_, value) => fourWords(byte(value).repeat(4)).split(' ')[0],
  )
  assert.equal(new Set(words).size, 256)
  for (const word of words) assert.match(word ?? '', /^[a-z]{3,9}$/)
})

test('fourWords() shows every change of the first four bytes', () => {
  fc.assert(
    fc.property(
      fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.nat(3),
      fc.nat(255),
      (bytes, at, other) => {
        fc.pre(bytes[at] !== other)
        const words = fourWords(bytes.map(byte).join(''))
        const changed = fourWords(
          bytes.map((value, index) => byte(index === at ? other : value)).join(''),
        )
        assert.equal(words.split(' ').length, 4)
        assert.notEqual(words, changed)
      },
    ),
  )
})
