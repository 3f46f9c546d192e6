// bushel bench streams: two hundred readers through one gateway, some of them slow, then more than it takes.
import { parseArgs } from 'node:util'
import { measureStreams, quantile } from '../test/e2e/streams.ts'
import { type Verdict, verdict, verdictTable } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    streams: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '60' },
  },
})

const seen = await measureStreams({
  streams: Number(flags.streams),
  seconds: Number(flags.seconds),
})
const none = (name: string, value: number): Verdict =>
  verdict(name, { value, atMost: 0, all: [value], unit: '' })
const shares = [0.5, 0.9, 0.99, 0.999]
const verdicts = [
  none('streams that broke', seen.broken),
  none('streams with a token too few or too many', seen.incomplete),
  verdict('added latency of a token, 99th of a hundred', {
    value: quantile(seen.addedMs, 0.99),
    atMost: 25,
    all: shares.map((share) => quantile(seen.addedMs, share)),
    unit: 'ms',
  }),
  verdict('memory of the daemon grown after ten seconds', {
    value: (seen.lateBytes - seen.earlyBytes) / 1e6,
    // A megabyte for each reader that does not read, and what a garbage collector lets lie.
    atMost: seen.slowReaders + 20,
    all: [seen.earlyBytes / 1e6, seen.lateBytes / 1e6],
    unit: 'MB',
  }),
  none('refusals that were not 429 with Retry-After', seen.unclear),
  verdict('a refusal when everything is taken, the slowest', {
    value: quantile(seen.refusedMs, 1),
    atMost: 50,
    all: [0.5, 1].map((share) => quantile(seen.refusedMs, share)),
    unit: 'ms',
  }),
]
console.log(verdictTable(verdicts))
if (verdicts.some((one) => !one.ok)) process.exitCode = 1
