import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadFrameFor } from '../runtime/load-frame.ts'
import { a, planOf } from '../../test/support/machine-states.ts'
import type { FrameFromWorker } from '../wire/worker-frames.ts'
import { RankProcesses } from './rank-process.ts'

let folder = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'bushel-ranks-'))
})
after(() => rmSync(folder, { recursive: true }))

interface Life {
  readonly frames: FrameFromWorker[]
  readonly warnings: string[]
  readonly cause: string
}

/** A worker that is this shell script instead. */
function live(script: string): Promise<Life> {
  const python = join(folder, `worker-${Math.random().toString(36).slice(2)}`)
  writeFileSync(python, `#!/bin/sh\n${script}\n`)
  chmodSync(python, 0o755)
  const frames: FrameFromWorker[] = []
  const warnings: string[] = []
  const warn = (text: string): void => void warnings.push(text)
  const ranks = new RankProcesses({
    python,
    workerDir: folder,
    logDir: join(folder, 'logs'),
    machine: a,
    env: {},
    warn,
  })
  const load = loadFrameFor({
    plan: planOf([a]),
    rank: 0,
    endpoints: [null],
    secret: 's',
    files: { path: '/nowhere', engine: 'scripted' },
  })
  return new Promise((resolve) => {
    ranks.launch(load, {
      frame: (frame) => frames.push(frame),
      exit: (cause) => resolve({ frames, warnings, cause }),
    })
  })
}

test('RankProcesses hands on frames, warns of lines that are none, and says how it ended', async () => {
  const { frames, warnings, cause } = await live(
    `echo '{"kind":"pulse","step":1,"busy":true}' >&4; echo nonsense >&4; echo '{"kind":"pulse"}' >&4; echo 'last words'; exit 3`,
  )
  assert.deepEqual(frames, [{ kind: 'pulse', step: 1, busy: true }])
  assert.equal(warnings.length, 2)
  assert.match(cause, /exit code 3.*last words/)
})

test('RankProcesses ends a rank that sends a line without end, instead of dying with it', async () => {
  const { cause } = await live('head -c 80000000 /dev/zero >&4; sleep 60')
  assert.match(cause, /the rank was ended: it sent a line of more than 67108864 bytes/)
})

test('RankProcesses says which signal ended a rank', async () => {
  const { cause } = await live('kill -9 $$')
  assert.match(cause, /signal SIGKILL/)
})

test('RankProcesses keeps a known error that stands above a long traceback', async () => {
  const { cause } = await live(
    `echo "[ring] Couldn't connect (error: 65)"; for i in 1 2 3 4 5 6; do echo "frame $i"; done; exit 1`,
  )
  assert.match(
    cause,
    /exit code 1: \[ring\] Couldn't connect \(error: 65\) \| frame 4 \| frame 5 \| frame 6$/,
  )
})
