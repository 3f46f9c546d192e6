// The spec reporter, closed by the one line that scripts and CI read: "N passed, N failed".
import { writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { spec } from 'node:test/reporters'

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly cancelled: number
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let counts: Counts = { passed: 0, failed: 1, cancelled: 0 }
  async function* watched(): AsyncGenerator<TestEvent> {
    for await (const event of source) {
      if (event.type === 'test:summary' && event.data.file === undefined)
        counts = event.data.counts as unknown as Counts
      yield event
    }
  }
  for await (const part of Readable.from(watched()).compose(new spec())) yield String(part)
  const failed = counts.failed + counts.cancelled
  // The test command adds up several runs, so each also leaves its counts where it is told to.
  const countsFile = process.env['BUSHEL_TEST_COUNTS']
  if (countsFile !== undefined)
    writeFileSync(countsFile, JSON.stringify({ passed: counts.passed, failed }))
  yield `\n${counts.passed} passed, ${failed} failed\n`
}
