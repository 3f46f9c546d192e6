import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type PullProgress, pullModel } from './hub-pull.ts'

const sha = 'c'.repeat(40)
const weights = Buffer.alloc(3_000_000, 7)
const files: Readonly<Record<string, Buffer>> = {
  'config.json': Buffer.from('{"model_type":"llama"}'),
  'model.safetensors': weights,
  'tokenizer.json': Buffer.from('{}'),
  'pytorch_model.bin': Buffer.from('another format'),
  'original/config.json': Buffer.from('the makers own'),
}
const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex')
const gitHash = (data: Buffer): string =>
  createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex')

/** A server that speaks as much of the hub's API as a pull needs, and misbehaves when told to. */
class Hub {
  readonly asked: string[] = []
  /** How many more times the weights break off in the middle. */
  breaks = 0
  lies = false
  status = 200
  listed: Readonly<Record<string, Buffer>> = files
  readonly #server: Server = createServer((request, response) => this.#answer(request, response))

  async start(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? '/', 'http://hub')
    const { range } = request.headers
    this.asked.push(`${pathname} ${range ?? ''}`.trim())
    const json = (value: unknown): void => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(value))
    }
    if (this.status !== 200) {
      response.statusCode = this.status
      json({ error: 'no' })
    } else if (pathname === '/api/models/some/model/revision/main')
      json({
        _id: '1',
        id: 'some/model',
        sha,
        private: false,
        gated: false,
        downloads: 0,
        likes: 0,
      })
    else if (pathname === `/api/models/some/model/tree/${sha}`) json(this.#tree())
    else this.#file(pathname.replace(`/some/model/resolve/${sha}/`, ''), range, response)
  }

  #tree(): readonly object[] {
    return Object.entries(this.listed).map(([path, data]) => ({
      type: 'file',
      path,
      size: data.length,
      oid: gitHash(data),
      ...(path.endsWith('.safetensors') ? { lfs: { oid: sha256(data), size: data.length } } : {}),
    }))
  }

  #file(path: string, range: string | undefined, response: ServerResponse): void {
    const data = files[path]
    if (data === undefined) {
      response.statusCode = 404
      response.end('{}')
      return
    }
    const whole = this.lies && path === 'model.safetensors' ? Buffer.alloc(data.length, 8) : data
    const match = /bytes=(\d+)-(\d*)/.exec(range ?? '')
    const start = Number(match?.[1] ?? 0)
    const end = match?.[2] === undefined || match[2] === '' ? whole.length - 1 : Number(match[2])
    const part = whole.subarray(start, end + 1)
    response.statusCode = match === null ? 200 : 206
    response.setHeader('etag', `"${gitHash(data)}"`)
    response.setHeader('content-range', `bytes ${start}-${start + part.length - 1}/${whole.length}`)
    response.setHeader('content-length', part.length)
    if (part.length > 1_000_000 && this.breaks > 0) {
      this.breaks -= 1
      response.write(part.subarray(0, 1_000_000), () => response.destroy())
    } else response.end(part)
  }
}

describe('pullModel()', () => {
  let hub: Hub
  let endpoint = ''
  let cacheDir = ''
  let seen: PullProgress[] = []

  beforeEach(async () => {
    hub = new Hub()
    endpoint = await hub.start()
    cacheDir = mkdtempSync(join(tmpdir(), 'bushel-hub-'))
    seen = []
  })

  afterEach(() => {
    hub.stop()
    rmSync(cacheDir, { recursive: true, force: true })
  })

  const pull = (name = 'some/model'): Promise<string> =>
    pullModel({ name, cacheDir, endpoint, progress: (progress) => void seen.push(progress) })

  test('puts what MLX reads into the Hugging Face cache, and leaves other formats', async () => {
    const folder = await pull()
    assert.equal(folder, join(cacheDir, 'models--some--model', 'snapshots', sha))
    assert.deepEqual(readdirSync(folder).toSorted(), [
      'config.json',
      'model.safetensors',
      'tokenizer.json',
    ])
    assert.ok(readFileSync(join(folder, 'model.safetensors')).equals(weights))
    assert.equal(readFileSync(join(cacheDir, 'models--some--model/refs/main'), 'utf8'), sha)
    const last = seen.at(-1)
    assert.equal(last?.phase, 'done')
    assert.equal(last?.doneBytes, last?.totalBytes)
    const done = seen.map((progress) => progress.doneBytes)
    assert.deepEqual(
      done,
      [...done].toSorted((x, y) => x - y),
    )
  })

  test('goes on where a broken connection left off', async () => {
    hub.breaks = 2
    const folder = await pull()
    assert.ok(readFileSync(join(folder, 'model.safetensors')).equals(weights))
    const starts = hub.asked
      .filter((line) => line.includes('model.safetensors bytes='))
      .map((line) => Number(/bytes=(\d+)/.exec(line)?.[1]))
    assert.ok(
      starts.some((start) => start >= 500_000),
      `asked for ${starts.join(', ')}`,
    )
  })

  test('fetches nothing twice', async () => {
    await pull()
    hub.asked.length = 0
    await pull()
    assert.deepEqual(
      hub.asked.filter((line) => line.includes('/resolve/')),
      [],
    )
  })

  test('believes no byte before its hash is right', async () => {
    hub.lies = true
    await assert.rejects(pull(), /model\.safetensors failed 5 times.*its hash is/)
    assert.throws(() => readFileSync(join(cacheDir, 'models--some--model/refs/main')))
  })

  test('says what is wrong with a name, a gated model, one that is not there, one without weights', async () => {
    await assert.rejects(pull('../../etc'), /no hub name; give it as ORG\/NAME/)
    hub.status = 401
    await assert.rejects(pull(), /private or gated: set HF_TOKEN/)
    hub.status = 404
    await assert.rejects(pull(), /has no model "some\/model"/)
    hub.status = 200
    hub.listed = { 'config.json': files['config.json'] as Buffer }
    await assert.rejects(pull(), /no safetensors weights/)
    hub.listed = { '../evil.json': Buffer.from('x'), 'config.json': Buffer.from('x') }
    await assert.rejects(pull(), /outside its folder/)
  })
})
