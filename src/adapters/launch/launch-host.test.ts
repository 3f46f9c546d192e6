// Real scripts under real keepers, led over a stream as another daemon would.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, test } from 'node:test'
import { runtimePython, withoutMlx } from '../../../test/support/python.ts'
import {
  type FromLaunchedRank,
  type ToLaunchedRank,
  fromLaunchedRank,
} from '../../wire/launch-messages.ts'
import { machineId } from '../../core/ids.ts'
import { FramedStream } from './framed-stream.ts'
import { LaunchHost } from './launch-host.ts'

const keeper = join(import.meta.dirname, '../../../worker/bushel_worker/launch_keeper.py')
const skip = withoutMlx
let home = ''

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'bushel-launch-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function createHost(refusal: string | null = null): LaunchHost {
  let count = 0
  return new LaunchHost({
    home,
    machine: machineId('a'.repeat(32)),
    python: runtimePython,
    keeper,
    env: () => ({ PATH: '/usr/bin:/bin', KEPT: 'yes', MLX_RANK: 'stale' }),
    endpointFacing: async () => ({ host: '127.0.0.1', port: 1 }),
    randomHex: () => `id${count++}`,
    refusal: () => refusal,
    note: () => undefined,
  })
}

class Lead {
  readonly heard: FromLaunchedRank[] = []
  readonly closed: Promise<string>
  readonly stream: FramedStream<ToLaunchedRank, FromLaunchedRank>

  constructor(stream: Duplex) {
    let tell: (reason: string) => void = () => undefined
    this.closed = new Promise((resolve) => (tell = resolve))
    this.stream = new FramedStream({
      stream,
      head: Buffer.alloc(0),
      schema: fromLaunchedRank,
      events: { message: (message) => void this.heard.push(message), closed: tell },
    })
  }

  async run(script: string, hasInput = false): Promise<void> {
    const data = Buffer.from(script).toString('base64')
    await this.stream.send({ kind: 'file', path: 'deep/x.py', executable: false, data })
    await this.stream.send({
      kind: 'start',
      script: 'deep/x.py',
      args: ['one'],
      env: { GIVEN: 'too' },
      unset: ['MLX_RANK'],
      files: [{ variable: 'MLX_HOSTFILE', content: '[]' }],
      hasInput,
    })
  }

  said(): string {
    const outputs = this.heard.filter((one) => one.kind === 'output')
    return Buffer.concat(outputs.map((one) => Buffer.from(one.data, 'base64'))).toString()
  }

  end(): FromLaunchedRank | undefined {
    return this.heard.find((one) => one.kind === 'exited' || one.kind === 'failed')
  }

  async until(isTrue: () => boolean): Promise<void> {
    const endMs = performance.now() + 10_000
    while (!isTrue()) {
      assert.ok(performance.now() < endMs, JSON.stringify(this.heard))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

/** A dead process that nobody has waited for yet does not count. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z')
}

const left = (): readonly string[] =>
  existsSync(join(home, 'launches')) ? readdirSync(join(home, 'launches')) : []

test(
  'LaunchHost runs a script in its folder with its environment, and removes everything',
  { skip },
  async () => {
    const host = createHost()
    const lead = new Lead(host.open())
    await lead.run(
      'import os, sys\nprint(sys.argv[1:], os.path.basename(os.getcwd()), [os.environ.get(x) for x in ("KEPT", "GIVEN", "MLX_RANK")], open(os.environ["MLX_HOSTFILE"]).read(), sys.stdin.read() + "|")\nsys.exit(5)\n',
    )
    await lead.closed
    assert.equal(lead.said(), "['one'] files ['yes', 'too', None] [] |\n")
    assert.deepEqual(lead.end(), { kind: 'exited', code: 5, signal: 0 })
    await host.stop()
    assert.deepEqual(left(), [])
  },
)

test(
  'LaunchHost gives input piece by piece, and signals overtake what the script does not read',
  { skip },
  async () => {
    const host = createHost()
    const lead = new Lead(host.open())
    await lead.run('import time\nprint(input("name? "), flush=True)\ntime.sleep(600)\n', true)
    const data = Buffer.from('anna\n').toString('base64')
    await lead.stream.send({ kind: 'stdin', data })
    await lead.until(() => lead.said().includes('anna'))
    assert.equal(lead.said(), 'name? anna\n')
    const much = Buffer.alloc(200_000).toString('base64')
    for (let at = 0; at < 3; at++) await lead.stream.send({ kind: 'stdin', data: much })
    await lead.stream.send({ kind: 'signal', signal: 'SIGINT' })
    await lead.closed
    assert.deepEqual(lead.end(), { kind: 'exited', code: 0, signal: 2 })
    await host.stop()
  },
)

test(
  'LaunchHost ends a script that ignores TERM, with its children, when the stream closes',
  { skip },
  async () => {
    const host = createHost()
    const stream = host.open()
    const lead = new Lead(stream)
    await lead.run(
      'import os, signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nother = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=sys.platform == "linux")\nprint(os.getpid(), other.pid, flush=True)\ntime.sleep(600)\n',
    )
    await lead.until(() => lead.said().includes('\n'))
    const pids = lead.said().trim().split(' ').map(Number)
    const startedMs = performance.now()
    stream.destroy()
    await host.stop()
    assert.ok(performance.now() - startedMs < 2000)
    for (const pid of pids) assert.equal(isRunning(pid), false)
    assert.deepEqual(left(), [])
  },
)

test('LaunchHost ends the script of a keeper that was killed', { skip }, async () => {
  const host = createHost()
  const lead = new Lead(host.open())
  await lead.run('import os, time\nprint(os.getpid(), os.getppid(), flush=True)\ntime.sleep(600)\n')
  await lead.until(() => lead.said().includes('\n'))
  const [script = 0, keeperPid = 0] = lead.said().trim().split(' ').map(Number)
  process.kill(keeperPid, 'SIGKILL')
  await lead.closed
  assert.deepEqual(lead.end(), { kind: 'failed', reason: 'its keeper was killed' })
  await host.stop()
  assert.equal(isRunning(script), false)
  assert.deepEqual(left(), [])
})

test(
  'LaunchHost refuses when its owner does not allow launches, and paths that leave the folder',
  { skip },
  async () => {
    assert.throws(
      () => createHost('studio does not allow launches').open(),
      /studio does not allow/,
    )
    const host = createHost()
    const lead = new Lead(host.open())
    await lead.stream.send({ kind: 'file', path: '../out.py', executable: false, data: '' })
    await lead.closed
    assert.equal(existsSync(join(home, 'launches', 'out.py')), false)
    await host.stop()
    assert.deepEqual(left(), [])
  },
)
