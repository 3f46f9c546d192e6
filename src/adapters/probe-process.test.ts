// The measuring processes as they are, with the real MLX of this machine.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hopTimings, worldTimings } from '../wire/plan-data.ts'
import { type ProbeJob, probeJob } from '../wire/probe-job.ts'
import { ProbeFailedError, type ProbeProgram, runProbe } from './probe-process.ts'

const root = join(import.meta.dirname, '../..')
const program: ProbeProgram = {
  python: join(root, '.runtime/python/bin/python'),
  workerDir: join(root, 'worker'),
  env: { MKL_NUM_THREADS: '1' },
}
const host = '127.0.0.1'

async function only(job: ProbeJob): Promise<unknown> {
  let last = ''
  for await (const line of runProbe(program, job)) last = line
  return JSON.parse(last)
}

test('runProbe() times hops between two processes, one of which listens for one peer', async () => {
  const serving = runProbe(program, { kind: 'hop-serve', host })
  const first = await serving.next()
  const { port, secret } = JSON.parse(String(first.value)) as { port: number; secret: string }
  const { seconds } = hopTimings.parse(await only({ kind: 'hop-dial', host, port, secret }))
  assert.equal(seconds.length, 40)
  assert.ok(seconds.every((one) => one > 0 && one < 1))
  assert.equal((await serving.next()).done, true)
})

test('runProbe() times small and large all-reduces of a ring', async () => {
  const base = 21_000 + (process.pid % 8000)
  const hosts = [0, 1].map((rank) => ({ host, port: base + rank }))
  const [timings] = await Promise.all(
    [0, 1].map((rank) => only({ kind: 'world', backend: 'ring', rank, hosts })),
  )
  const { backend, smallSeconds, mebibyteSeconds } = worldTimings.parse(timings)
  assert.equal(backend, 'ring')
  assert.equal(smallSeconds.length, mebibyteSeconds.length)
})

test('runProbe() fails with the last words of the process', async () => {
  const job: ProbeJob = { kind: 'hop-dial', host, port: 1025, secret: '0'.repeat(32) }
  await assert.rejects(
    only(job),
    (error) => error instanceof ProbeFailedError && /refused/.test(error.message),
  )
})

test('runProbe() ends a process that waits when nobody wants its answer any more', async () => {
  const giveUp = new AbortController()
  const serving = runProbe(program, { kind: 'hop-serve', host }, giveUp.signal)
  await serving.next()
  const startedMs = performance.now()
  giveUp.abort()
  await assert.rejects(serving.next(), ProbeFailedError)
  assert.ok(performance.now() - startedMs < 2000)
})

test('probeJob() lets nothing through that is no measurement', () => {
  for (const job of [
    { kind: 'shell' },
    { kind: 'hop-serve', host: '$(reboot)' },
    { kind: 'hop-dial', host, port: 22, secret: '0'.repeat(32) },
    { kind: 'hop-dial', host, port: 2222, secret: '--help' },
    { kind: 'world', backend: 'nccl', rank: 0, hosts: [] },
    {
      kind: 'world',
      backend: 'jaccl',
      rank: 0,
      shape: 'mesh',
      matrix: [
        [null, '/etc/passwd'],
        ['rdma_en3', null],
      ],
      coordinator: { host, port: 2222 },
    },
  ])
    assert.ok(!probeJob.safeParse(job).success, JSON.stringify(job))
})
