// Both ends of the worker's pipe agree on these frames: the Python suite runs the same lines.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { z } from 'zod'
import { frameFromWorker, frameToWorker } from '../../src/wire/worker-frames.ts'

const caseSchema = z.object({ name: z.string(), valid: z.boolean(), frame: z.unknown() })

function readCases(name: string): z.infer<typeof caseSchema>[] {
  const file = new URL(`frames/${name}.jsonl`, import.meta.url)
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => caseSchema.parse(JSON.parse(line)))
}

for (const [name, schema] of [
  ['to-worker', frameToWorker],
  ['from-worker', frameFromWorker],
] as const) {
  test(`${name} frames are accepted and refused as both sides agreed`, () => {
    const cases = readCases(name)
    assert.ok(cases.length > 30)
    const wrong = cases
      .filter(({ frame, valid }) => schema.safeParse(frame).success !== valid)
      .map((entry) => entry.name)
    assert.deepEqual(wrong, [])
  })
}
