// bushel bench streams: two hundred readers through one gateway, some of them slow, then more than it takes.
//
// The scripted engine answers at a steady pace, so whatever comes later than that pace was added on the way.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startDaemon } from '../test/e2e/daemon.ts'
import { programDir } from './lib/paths.ts'
import { type Verdict, verdict, verdictTable } from './lib/stats.ts'

const { values: flags } = parseArgs({
  options: {
    streams: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '60' },
  },
})
const streams = Number(flags.streams)
const seconds = Number(flags.seconds)
const tokensPerSecond = 20
const replicas = Math.ceil(streams / 25)
const slowReaders = 10

const folder = mkdtempSync(join(tmpdir(), 'bushel-streams-'))
const model = join(folder, 'steady')
mkdirSync(model)
const script = { tokensPerSecond, tokens: seconds * tokensPerSecond, layers: 8 }
writeFileSync(join(model, 'script.json'), JSON.stringify(script))
const daemon = await startDaemon({ args: ['--model', model, '--memory', '8GB'] })

interface Seen {
  readonly arrivalsMs: number[]
  error: string | null
  ended: boolean
}

function open(index: number, onResponse: (response: IncomingMessage) => void): void {
  const { hostname, port } = new URL(daemon.url)
  const outgoing = request(
    { hostname, port, path: '/v1/chat/completions', method: 'POST', agent: false },
    onResponse,
  )
  outgoing.on('error', () => undefined)
  outgoing.end(
    JSON.stringify({
      model: 'steady',
      stream: true,
      seed: index,
      messages: [{ role: 'user', content: `reader ${index}` }],
    }),
  )
}

function read(index: number): Promise<Seen> {
  const seen: Seen = { arrivalsMs: [], error: null, ended: false }
  return new Promise((done) => {
    open(index, (response) => {
      if (response.statusCode !== 200) seen.error = `status ${response.statusCode}`
      response.on('data', (chunk: Buffer) => {
        const text = chunk.toString()
        const now = performance.now()
        for (const _ of text.matchAll(/"delta":\{"content"/g)) seen.arrivalsMs.push(now)
        if (text.includes('"error"')) seen.error = text
        if (text.includes('[DONE]')) seen.ended = true
      })
      response.on('close', () => done(seen))
    })
  })
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}

execFileSync(
  join(programDir, 'bushel'),
  ['load', 'steady', '--strategy', 'single', '--replicas', String(replicas)],
  { env: { ...process.env, BUSHEL_HOME: daemon.home }, stdio: 'ignore' },
)
// Readiness comes with the first group; the others follow within a moment.
await new Promise((done) => setTimeout(done, 10_000))
const verdicts: Verdict[] = []
try {
  // They take a few bytes and then nothing more.
  for (let index = 0; index < slowReaders; index++)
    open(100_000 + index, (response) => response.once('data', () => response.pause()))
  const all = Promise.all(Array.from({ length: streams }, (_, index) => read(index)))
  await new Promise((done) => setTimeout(done, 10_000))
  const earlyBytes = residentBytes()
  const answers = await all
  const lateBytes = residentBytes()
  const broken = answers.filter((seen) => seen.error !== null || !seen.ended).length
  verdicts.push(
    verdict('streams that broke', { value: broken, atMost: 0, all: [broken], unit: '' }),
  )
  const added = answers
    .flatMap(({ arrivalsMs }) =>
      arrivalsMs
        .slice(1)
        .map((at, index) => at - (arrivalsMs[index] ?? at) - 1000 / tokensPerSecond),
    )
    .toSorted((x, y) => x - y)
  const p99 = added[Math.floor(added.length * 0.99)] ?? NaN
  verdicts.push(
    verdict('added latency of a token, 99th of a hundred', {
      value: p99,
      atMost: 25,
      all: [0.5, 0.9, 0.99, 0.999].map((part) => added[Math.floor(added.length * part)] ?? NaN),
      unit: 'ms',
    }),
  )
  const grown = (lateBytes - earlyBytes) / 1e6
  verdicts.push(
    verdict('memory of the daemon grown after ten seconds', {
      value: grown,
      atMost: slowReaders + 20,
      all: [earlyBytes / 1e6, lateBytes / 1e6],
      unit: 'MB',
    }),
  )
} finally {
  await daemon.stop()
  rmSync(folder, { recursive: true, force: true })
}
console.log(verdictTable(verdicts))
if (verdicts.some((one) => !one.ok)) process.exitCode = 1
