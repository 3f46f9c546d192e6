import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { PrefixedOutput } from './prefixed-output.ts'

function collect(): { output: PrefixedOutput; text: () => string } {
  const parts: Buffer[] = []
  const output = new PrefixedOutput(
    (rank) => `[${rank}] `,
    (data) => void parts.push(data),
  )
  return { output, text: () => Buffer.concat(parts).toString() }
}

test('PrefixedOutput puts the rank before each line and mixes none', () => {
  const { output, text } = collect()
  output.push(0, Buffer.from('one\ntw'))
  output.push(1, Buffer.from('three\n'))
  output.push(0, Buffer.from('o\n'))
  output.finish()
  assert.equal(text(), '[0] one\n[1] three\n[0] two\n')
})

test('PrefixedOutput shows a question without a line’s end, and goes on in the same line', () => {
  const { output, text } = collect()
  output.push(0, Buffer.from('name? '))
  output.flush()
  output.push(0, Buffer.from('thank you\n'))
  assert.equal(text(), '[0] name? thank you\n')
})

test('PrefixedOutput ends a shown part before another rank speaks', () => {
  const { output, text } = collect()
  output.push(0, Buffer.from('half'))
  output.flush()
  output.push(1, Buffer.from('other\n'))
  output.push(0, Buffer.from(' line\n'))
  output.finish()
  assert.equal(text(), '[0] half\n[1] other\n[0]  line\n')
})

test('PrefixedOutput loses no byte, wherever characters are cut', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((one) => !one.includes('\n'))
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), fc.integer({ min: 1, max: 7 }), (lines, size) => {
      const { output, text } = collect()
      const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(''))
      for (let at = 0; at < bytes.length; at += size) output.push(3, bytes.subarray(at, at + size))
      output.finish()
      assert.equal(text(), lines.map((one) => `[3] ${one}\n`).join(''))
    }),
  )
})
