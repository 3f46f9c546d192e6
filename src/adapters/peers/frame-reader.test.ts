import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { FrameReader, FrameTooLargeError, encodeFrame } from './frame-reader.ts'

/** The stream cut into pieces of these sizes, over and over. */
function pieces(stream: Buffer, sizes: readonly number[]): Buffer[] {
  const cut: Buffer[] = []
  let at = 0
  for (let index = 0; at < stream.length; index++) {
    const size = Math.max(1, sizes[index % Math.max(1, sizes.length)] ?? 1)
    cut.push(stream.subarray(at, at + size))
    at += size
  }
  return cut
}

test('FrameReader gives the same frames however the stream was cut', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { maxLength: 10 }), sizes, (values, cuts) => {
      const stream = Buffer.concat(values.map(encodeFrame))
      const reader = new FrameReader(1_000_000)
      const frames = pieces(stream, cuts).flatMap((piece) => reader.push(piece))
      assert.deepEqual(
        frames.map((frame) => frame.toString()),
        values.map((value) => JSON.stringify(value)),
      )
      assert.equal(reader.takeRest().length, 0)
    }),
  )
})

test('FrameReader refuses a prefix of 4 GB before it keeps a byte of it', () => {
  const reader = new FrameReader(65_536)
  assert.throws(() => reader.push(Buffer.from([0xff, 0xff, 0xff, 0xff])), FrameTooLargeError)
})

test('FrameReader refuses one byte too many, and takes the largest allowed', () => {
  const head = (length: number): Buffer => {
    const prefix = Buffer.alloc(4)
    prefix.writeUInt32BE(length)
    return prefix
  }
  assert.throws(() => new FrameReader(10).push(head(11)), FrameTooLargeError)
  const reader = new FrameReader(10)
  assert.deepEqual(reader.push(head(10)), [])
  assert.equal(reader.push(Buffer.alloc(10, 1))[0]?.length, 10)
})

test('FrameReader keeps no more than one frame, whatever nonsense comes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 30 }), (chunks) => {
      const reader = new FrameReader(256)
      try {
        for (const chunk of chunks) {
          for (const frame of reader.push(Buffer.from(chunk))) assert.ok(frame.length <= 256)
        }
      } catch (error) {
        assert.ok(error instanceof FrameTooLargeError)
        return
      }
      assert.ok(reader.takeRest().length <= 256 + 4)
    }),
  )
})

test('FrameReader hands over what came early when the stream becomes raw', () => {
  const reader = new FrameReader(100)
  const stream = Buffer.concat([encodeFrame({ kind: 'go' }), Buffer.from([0, 0])])
  assert.equal(reader.push(stream).length, 1)
  assert.deepEqual([...reader.takeRest()], [0, 0])
})
