// A real daemon for end-to-end tests: its own home and port, started as a user would, ended without a trace.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const programDir = join(import.meta.dirname, '..', '..')

/** Loads the starter model within it on a busy computer; a first set-up belongs before the tests. */
const readyMsMax = 180_000
const stopMsMax = 30_000
const outputCharsMax = 4000

export interface DaemonOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface TestDaemon {
  readonly url: string
  readonly home: string
  readonly pid: number
  /** The daemon and everything it started, as the system lists it now. */
  processes(): readonly number[]
  /** Ends it, removes its home, and fails if any of its processes is left. */
  stop(): Promise<void>
}

/** Settles when /readyz says that a model can be asked. */
export async function startDaemon({
  args = [],
  env = {},
}: DaemonOptions = {}): Promise<TestDaemon> {
  const home = mkdtempSync(join(tmpdir(), 'bushel-e2e-'))
  const port = await freePort()
  const child = spawn(join(programDir, 'bushel'), ['up', ...args], {
    cwd: programDir,
    env: { ...neutralEnv(), BUSHEL_HOME: home, BUSHEL_PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on(
      'data',
      (part: Buffer) => (output = (output + part.toString()).slice(-outputCharsMax)),
    )
  const { pid } = child
  assert(pid !== undefined, 'the daemon could not be started')
  // A test that is ended in the middle must not leave a daemon; ranks go when its pipes close.
  process.once('exit', () => child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  const processes = (): readonly number[] => withDescendants(pid)
  const stop = (): Promise<void> => end({ child, home, processes: processes(), said: () => output })
  try {
    await untilReady(url, child)
  } catch (error) {
    await stop().catch(() => undefined)
    throw new Error(`The daemon did not become ready. It said:\n${output}`, { cause: error })
  }
  return { url, home, pid, processes, stop }
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + readyMsMax
  while (performance.now() < deadline) {
    assert.equal(child.exitCode, null, `the daemon ended with code ${child.exitCode}`)
    const response = await fetch(`${url}/readyz`).catch(() => null)
    if (response?.ok === true) return
    await sleep(100)
  }
  throw new Error(`no 200 from ${url}/readyz within ${readyMsMax / 1000} s`)
}

async function end(daemon: {
  child: ChildProcess
  home: string
  processes: readonly number[]
  said: () => string
}): Promise<void> {
  const { child, home, processes, said } = daemon
  child.kill('SIGTERM')
  const deadline = performance.now() + stopMsMax
  while (processes.some(isAlive) && performance.now() < deadline) await sleep(50)
  const left = processes.filter(isAlive)
  // Whatever the verdict, nothing stays behind on the computer of whoever runs the tests.
  for (const pid of left) process.kill(pid, 'SIGKILL')
  rmSync(home, { recursive: true, force: true })
  assert.deepEqual(left, [], `processes left after the daemon was stopped. It said:\n${said()}`)
}

/** The daemon's settings come from the test, not from the shell it happens to run in. */
function neutralEnv(): NodeJS.ProcessEnv {
  const kept = new Set(['BUSHEL_RUNTIME', 'BUSHEL_PYTHON', 'BUSHEL_RANK_THREADS'])
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('BUSHEL_') || kept.has(name),
  )
  // Other daemons on this network are none of a test's business.
  return { ...Object.fromEntries(own), BUSHEL_DISCOVERY: 'off' }
}

/** A port whose next one is free too: peers listen there. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const port = await tryPort(0)
    if (port !== null && port < 65_535 && (await tryPort(port + 1)) !== null) return port
  }
  throw new Error('found no two free ports side by side')
}

function tryPort(wanted: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(null))
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      const port = address !== null && typeof address === 'object' ? address.port : null
      server.close(() => resolve(port))
    })
  })
}

/** By parentage, which macOS and Linux list alike. */
function withDescendants(root: number): readonly number[] {
  const pairs = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const found = [root]
  for (const parent of found)
    for (const [pid, ppid] of pairs) if (ppid === parent && pid !== undefined) found.push(pid)
  return found
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
