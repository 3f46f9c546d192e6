// A computer that cannot hold two models at once: an idle one that a request loaded makes room, one that a person
// loaded does not. Scripted models keep it quick.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestDaemon, startDaemon } from './daemon.ts'

const root = resolve(import.meta.dirname, '..', '..')

describe('room for models', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bushel-room-'))
  let daemon: TestDaemon

  const script = (path: string, fields: object): string => {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'script.json'), JSON.stringify(fields))
    return path
  }
  const ask = (model: string, extra: object = {}): Promise<Response> => {
    const body = { model, messages: [{ role: 'user', content: 'Hello' }], ...extra }
    return fetch(`${daemon.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
  }
  const answerOf = async (response: Response): Promise<string> => {
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    return choices[0]?.message.content ?? ''
  }
  const loaded = async (): Promise<readonly string[]> => {
    const response = await fetch(`${daemon.url}/api/ps`)
    const { models } = (await response.json()) as { models: { name: string }[] }
    return models.map(({ name }) => name.replace(':latest', ''))
  }
  const logged = (): string =>
    readdirSync(daemon.home, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.log'))
      .map((name) => readFileSync(join(daemon.home, name), 'utf8'))
      .join('')
  const cli = (...args: readonly string[]) => {
    const env = { ...process.env, BUSHEL_HOME: daemon.home, BUSHEL_DISCOVERY: 'off', HOME: folder }
    const run = spawnSync(join(root, 'bushel'), args, { env, encoding: 'utf8', timeout: 60_000 })
    return { code: run.status, output: run.stdout + run.stderr }
  }

  before(async () => {
    const anchor = script(join(folder, 'anchor'), { say: 'A', tokensPerSecond: 200 })
    daemon = await startDaemon({ args: ['--model', anchor, '--memory', '2GB'] })
    const stored = join(daemon.home, 'models')
    for (const name of ['first', 'second'])
      script(join(stored, `${name}-0123456789ab`), {
        say: `I am the ${name} of them.`,
        tokensPerSecond: 20,
        weightsBytes: 1_000_000_000,
      })
    assert.equal(cli('list').code, 0)
  })

  after(async () => {
    await daemon.stop()
    rmSync(folder, { recursive: true })
  })

  test('an idle model that a request loaded makes room, after its last answer, and the log says so', async () => {
    assert.match(await answerOf(await ask('first')), /first/)
    const running = ask('first')
    await sleep(200)
    const answer = await answerOf(await ask('second'))
    assert.match(answer, /second/)
    assert.match(await answerOf(await running), /I am the first of them/)
    assert.deepEqual([...(await loaded())].sort(), ['anchor', 'second'])
    const lines = logged()
      .split('\n')
      .filter((line) => line.includes('an idle model makes room for another'))
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', /first.*second/)
  })

  test('back and forth between two models, each answer is right', async () => {
    for (const name of ['first', 'second', 'first'])
      assert.match(await answerOf(await ask(name)), new RegExp(`the ${name} of`))
  })

  test('what a person loaded stays, and the request is told what would help', async () => {
    assert.equal(cli('load', 'first').code, 0)
    const refused = await ask('second')
    assert.equal(refused.status, 503)
    const { error } = (await refused.json()) as { error: { code: string; message: string } }
    assert.equal(error.code, 'insufficient_memory')
    assert.match(
      error.message,
      /second cannot be loaded: .*needs 1\.3 GB.*first was loaded to stay/,
    )
    // The wish went with the refusal: nothing is loaded behind everyone's back later.
    assert.equal(cli('unload', 'first').code, 0)
    await sleep(1500)
    assert.deepEqual(await loaded(), ['anchor'])
  })
})
