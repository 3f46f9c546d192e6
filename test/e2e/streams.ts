// Many readers through one gateway: some slow, then more than there is room for. The scripted engine writes at a
// steady pace, so whatever comes later than that pace was added on the way.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestDaemon, startDaemon } from './daemon.ts'

const programDir = resolve(import.meta.dirname, '..', '..')
const model = 'steady'
const tokensPerSecond = 20
const streamsPerGroup = 25
/** They read a few bytes and then nothing more. */
const slowReaders = 10
const promptTokensMax = 1024
const settleMs = 10_000
const refusalsAsked = 50
/** More than all groups can queue. */
const heldMax = 5000

export interface StreamFigures {
  /** Streams that ended with an error, or did not end. */
  readonly broken: number
  /** Streams whose text is not what the engine was told to write, to the token. */
  readonly incomplete: number
  /** Sorted: by how much each token came later than the pace says. */
  readonly addedMs: readonly number[]
  /** The daemon's memory once all streams run, and when they have ended. */
  readonly earlyBytes: number
  readonly lateBytes: number
  readonly slowReaders: number
  /** Sorted: how long a refusal took when everything was taken. */
  readonly refusedMs: readonly number[]
  /** Refusals that were not 429 with Retry-After. */
  readonly unclear: number
}

export async function measureStreams(asked: {
  readonly streams: number
  readonly seconds: number
}): Promise<StreamFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-streams-'))
  const tokens = asked.seconds * tokensPerSecond
  mkdirSync(join(folder, model))
  // A byte is a token there; plain letters, so that each of them is seen as soon as it is made.
  const script = {
    tokensPerSecond,
    say: 'all the apples fell. '.repeat(tokens).slice(0, tokens),
    contextTokens: tokens + promptTokensMax,
  }
  writeFileSync(join(folder, model, 'script.json'), JSON.stringify(script))
  const daemon = await startDaemon({ args: ['--model', join(folder, model), '--memory', '8GB'] })
  try {
    await spread(daemon, Math.ceil(asked.streams / streamsPerGroup))
    const crowd = new Crowd(daemon.url)
    const slow = Array.from({ length: slowReaders }, (_, index) => crowd.dawdle(100_000 + index))
    const all = Promise.all(Array.from({ length: asked.streams }, (_, index) => crowd.read(index)))
    await sleep(settleMs)
    const earlyBytes = residentBytes(daemon)
    const answers = await all
    const lateBytes = residentBytes(daemon)
    for (const one of slow) one.destroy()
    return {
      broken: answers.filter((seen) => seen.error !== null || !seen.ended).length,
      incomplete: answers.filter((seen) => seen.arrivalsMs.length !== tokens).length,
      addedMs: answers.flatMap(({ arrivalsMs }) => lateness(arrivalsMs)).sort((x, y) => x - y),
      earlyBytes,
      lateBytes,
      slowReaders,
      ...(await crowd.overload()),
    }
  } finally {
    await daemon.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a share of all tokens does not exceed. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function lateness(arrivalsMs: readonly number[]): readonly number[] {
  return arrivalsMs
    .slice(1)
    .map((at, index) => at - (arrivalsMs[index] ?? at) - 1000 / tokensPerSecond)
}

async function spread(daemon: TestDaemon, replicas: number): Promise<void> {
  const words = ['load', model, '--strategy', 'single', '--replicas', String(replicas)]
  execFileSync(join(programDir, 'bushel'), words, {
    env: { ...process.env, BUSHEL_HOME: daemon.home },
    stdio: 'ignore',
  })
  // Readiness comes with the first group.
  const deadline = performance.now() + 60_000
  for (let ready = 0; ready < replicas; await sleep(200)) {
    if (performance.now() > deadline) throw new Error(`only ${ready} of ${replicas} groups came up`)
    const views = (await (await fetch(`${daemon.url}/cluster/deployments`)).json()) as {
      groups: { status: string }[]
    }[]
    ready = views.flatMap(({ groups }) => groups).filter(({ status }) => status === 'ready').length
  }
}

function residentBytes(daemon: TestDaemon): number {
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}

interface Seen {
  readonly arrivalsMs: number[]
  error: string | null
  ended: boolean
}

class Crowd {
  readonly #url: URL

  constructor(url: string) {
    this.#url = new URL(url)
  }

  read(index: number): Promise<Seen> {
    const seen: Seen = { arrivalsMs: [], error: null, ended: false }
    return new Promise((done) => {
      const outgoing = this.#open(index, (response) => {
        if (response.statusCode !== 200) seen.error = `status ${response.statusCode}`
        let rest = ''
        response.on('data', (chunk: Buffer) => {
          const nowMs = performance.now()
          const events = (rest + chunk.toString()).split('\n\n')
          rest = events.pop() ?? ''
          for (const event of events) {
            if (event.includes('"delta":{"content"')) seen.arrivalsMs.push(nowMs)
            else if (event.includes('"error"')) seen.error = event
            else if (event.includes('[DONE]')) seen.ended = true
          }
        })
        response.on('close', () => done(seen))
      })
      outgoing.on('error', (error) => {
        seen.error ??= error.message
        done(seen)
      })
    })
  }

  dawdle(index: number): ClientRequest {
    const outgoing = this.#open(index, (response) => {
      response.once('data', () => response.pause())
    })
    return outgoing.on('error', () => undefined)
  }

  /** Takes every place there is, and then asks for more. */
  async overload(): Promise<Pick<StreamFigures, 'refusedMs' | 'unclear'>> {
    const held: ClientRequest[] = []
    for (let isFull = false; !isFull && held.length < heldMax;) {
      const { status, outgoing } = await this.#knock(200_000 + held.length)
      held.push(outgoing)
      isFull = status !== 200
    }
    const refusedMs: number[] = []
    let unclear = 0
    for (let index = 0; index < refusalsAsked; index++) {
      const startedMs = performance.now()
      const { status, retryAfter, outgoing } = await this.#knock(300_000 + index)
      refusedMs.push(performance.now() - startedMs)
      if (status !== 429 || !/^\d+$/.test(retryAfter)) unclear += 1
      outgoing.destroy()
    }
    for (const one of held) one.destroy()
    return { refusedMs: refusedMs.sort((x, y) => x - y), unclear }
  }

  /** As far as the status line; the answer itself is left running. */
  #knock(index: number): Promise<{ status: number; retryAfter: string; outgoing: ClientRequest }> {
    return new Promise((done, failed) => {
      const outgoing = this.#open(index, (response) => {
        response.resume()
        response.on('error', () => undefined)
        const retryAfter = response.headers['retry-after'] ?? ''
        done({ status: response.statusCode ?? 0, retryAfter, outgoing })
      })
      outgoing.on('error', failed)
    })
  }

  #open(index: number, onResponse: (response: IncomingMessage) => void): ClientRequest {
    const { hostname, port } = this.#url
    const path = '/v1/chat/completions'
    const outgoing = request({ hostname, port, path, method: 'POST', agent: false }, onResponse)
    const messages = [{ role: 'user', content: `reader ${index}` }]
    outgoing.end(JSON.stringify({ model, stream: true, seed: index, messages }))
    return outgoing
  }
}
