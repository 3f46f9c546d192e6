// One machine with the real small model, used as a person would use it.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { askUrl } from './client.ts'
import { type TestDaemon, startDaemon } from './daemon.ts'

const root = resolve(import.meta.dirname, '..', '..')
const model = 'SmolLM2-135M-Instruct'
const questions = [
  'What is the capital of France?',
  'Name three colours.',
  'Write a short poem about the sea.',
  'How do bees make honey?',
  'Count from one to ten.',
  'What is a prime number?',
  'Tell me about the moon.',
  'Give me a recipe for pancakes.',
]

function cli(
  home: string,
  ...args: readonly string[]
): { code: number; stdout: string; stderr: string } {
  const run = spawnSync(join(root, 'bushel'), args, {
    env: { ...process.env, BUSHEL_HOME: home, BUSHEL_DISCOVERY: 'off' },
    encoding: 'utf8',
    timeout: 120_000,
  })
  return { code: run.status ?? 1, stdout: run.stdout, stderr: run.stderr }
}

interface Ps {
  readonly groups: readonly {
    readonly status: string
    readonly stages: readonly { readonly ranks: readonly { readonly pid: number }[] }[]
  }[]
}

describe('one machine with the starter model', () => {
  let daemon: TestDaemon

  before(async () => {
    daemon = await startDaemon()
  })

  after(async () => {
    await daemon.stop()
  })

  const rankPid = (): number => {
    const [deployment] = JSON.parse(cli(daemon.home, 'ps', '--json').stdout) as Ps[]
    return deployment?.groups[0]?.stages[0]?.ranks[0]?.pid ?? 0
  }

  test('the capital of France is Paris, whole and as a stream', async () => {
    const streamed = await askUrl(daemon.url, { model, prompt: questions[0] ?? '', temperature: 0 })
    assert.match(streamed.text, /Paris/)
    assert.equal(streamed.finish, 'stop')
    const body = JSON.stringify({
      model,
      temperature: 0,
      messages: [{ role: 'user', content: questions[0] }],
    })
    const response = await fetch(`${daemon.url}/v1/chat/completions`, { method: 'POST', body })
    const whole = (await response.json()) as {
      choices: { message: { content: string } }[]
      usage: { prompt_tokens: number; completion_tokens: number }
    }
    assert.equal(whole.choices[0]?.message.content, streamed.text)
    // Only what was cached may differ: the second question finds the first one's prompt.
    assert.equal(whole.usage.completion_tokens, streamed.usage?.completion_tokens)
    assert.equal(whole.usage.prompt_tokens, streamed.usage?.prompt_tokens)
  })

  test('eight streams at once do not mix: each equals the same request alone', async () => {
    const ask = (prompt: string, index: number): ReturnType<typeof askUrl> =>
      askUrl(daemon.url, {
        model,
        prompt,
        seed: index,
        temperature: index % 2 === 0 ? 0 : 0.9,
        tokensMax: 40,
      })
    const alone = []
    for (const [index, prompt] of questions.entries()) alone.push((await ask(prompt, index)).text)
    const together = await Promise.all(questions.map(ask))
    assert.deepEqual(
      together.map((answer) => answer.text),
      alone,
    )
    assert.deepEqual(
      together.map((answer) => answer.usage?.completion_tokens ?? 0).every((tokens) => tokens > 0),
      true,
    )
  })

  test('a row that joins or leaves on the way changes no other', async () => {
    const steady = { model, prompt: questions[2] ?? '', temperature: 0, tokensMax: 60 }
    const alone = await askUrl(daemon.url, steady)
    const disturbed = askUrl(daemon.url, steady)
    await new Promise((done) => setTimeout(done, 300))
    const short = askUrl(daemon.url, {
      model,
      prompt: questions[4] ?? '',
      temperature: 0,
      tokensMax: 5,
    })
    const left = new AbortController()
    const hangingUp = askUrl(daemon.url, {
      model,
      prompt: questions[7] ?? '',
      temperature: 0,
      tokensMax: 200,
      signal: left.signal,
    })
    await short
    left.abort()
    await assert.rejects(hangingUp)
    assert.equal((await disturbed).text, alone.text)
  })

  test('a client that hangs up frees its slot', async () => {
    const left = new AbortController()
    const hangingUp = askUrl(daemon.url, {
      model,
      prompt: questions[2] ?? '',
      temperature: 0,
      tokensMax: 2000,
      signal: left.signal,
    })
    await new Promise((done) => setTimeout(done, 1500))
    left.abort()
    await assert.rejects(hangingUp)
    const log = (): string => readFileSync(join(daemon.home, 'logs', 'daemon.log'), 'utf8')
    // An answer that started afterwards is as quick as on an idle rank: nothing else is being computed.
    const first = await askUrl(daemon.url, {
      model,
      prompt: questions[4] ?? '',
      temperature: 0,
      tokensMax: 8,
    })
    assert.equal(first.error, null)
    assert.ok(!log().includes('sea'), 'no prompt is ever in a log')
  })

  test('kill -9 of the rank: a stream goes on, and the next request answers', async () => {
    const asked = { model, prompt: questions[3] ?? '', temperature: 0, tokensMax: 60 }
    const unbroken = await askUrl(daemon.url, asked)
    const before = rankPid()
    const broken = askUrl(daemon.url, asked)
    await new Promise((done) => setTimeout(done, 1200))
    process.kill(before, 'SIGKILL')
    const { text, finish, usage } = await broken
    assert.equal(text, unbroken.text)
    assert.equal(finish, unbroken.finish)
    assert.equal(usage?.completion_tokens, unbroken.usage?.completion_tokens)
    assert.notEqual(rankPid(), before)
  })

  test('the command line: status, ps, list, run, logs and completion', () => {
    assert.match(cli(daemon.home, 'status').stdout, /SmolLM2-135M-Instruct ready/)
    assert.match(cli(daemon.home, 'ps', model).stdout, /stage 0 {2}layers 0–29/)
    const models = JSON.parse(cli(daemon.home, 'list', '--json').stdout) as {
      name: string
      loaded: boolean
    }[]
    assert.deepEqual([models[0]?.name, models[0]?.loaded], [model, true])
    const { code, stdout } = cli(
      daemon.home,
      'run',
      model,
      'What is the capital of France?',
      '--temperature',
      '0',
    )
    assert.equal(code, 0)
    assert.match(stdout, /Paris/)
    assert.match(cli(daemon.home, 'logs').stdout, /up/)
    for (const shell of ['bash', 'zsh', 'fish'])
      assert.match(cli(daemon.home, 'completion', shell).stdout, /unload/)
    assert.equal(cli(daemon.home, 'no-such-command').code, 2)
  })

  test('the OpenAPI document names the routes', async () => {
    const document = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as {
      paths: Record<string, unknown>
    }
    assert.ok('/v1/chat/completions' in document.paths)
  })

  test('a second daemon on the same home, and one on a taken port, each say so in one line', async () => {
    const second = cli(daemon.home, 'up', '--port', '29999')
    assert.equal(second.code, 1)
    assert.match(second.stderr, /already runs/)
    const home = mkdtempSync(join(tmpdir(), 'bushel-second-'))
    const taken = cli(home, 'up', '--port', new URL(daemon.url).port)
    assert.equal(taken.code, 1)
    assert.match(taken.stderr, /^bushel: Port \d+ is taken.*\n$/)
    rmSync(home, { recursive: true })
  })
})

describe('starting under bad conditions', () => {
  const expectLine = (
    env: Record<string, string>,
    args: readonly string[],
    message: RegExp,
  ): void => {
    const run = spawnSync(join(root, 'bushel'), args, {
      env: { ...process.env, BUSHEL_DISCOVERY: 'off', ...env },
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.notEqual(run.status, 0)
    assert.match(run.stderr, message)
    assert.ok(!run.stderr.includes('    at '), 'no stack trace')
  }

  test('a home that cannot be written is said plainly', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bushel-home-'))
    writeFileSync(join(folder, 'file'), '')
    expectLine(
      { BUSHEL_HOME: join(folder, 'file', 'home') },
      ['up'],
      /Cannot write to .*set BUSHEL_HOME/,
    )
    rmSync(folder, { recursive: true })
  })

  test('config.toml with a typo, a wrong value or no TOML is said plainly', () => {
    const home = mkdtempSync(join(tmpdir(), 'bushel-home-'))
    for (const [text, message] of [
      ['prot = 1', /prot/],
      ['port = 99999', /port/],
      ['= broken', /not valid TOML/],
    ] as const) {
      writeFileSync(join(home, 'config.toml'), text)
      expectLine({ BUSHEL_HOME: home }, ['up'], message)
    }
    rmSync(home, { recursive: true })
  })

  test('ports out of range, memory beyond the machine and an open listener without a key are refused', () => {
    const home = mkdtempSync(join(tmpdir(), 'bushel-home-'))
    expectLine({ BUSHEL_HOME: home }, ['up', '--port', '70000'], /no port/)
    expectLine({ BUSHEL_HOME: home }, ['up', '--memory', '900TB'], /cannot lend/)
    expectLine({ BUSHEL_HOME: home }, ['up', '--memory', 'lots'], /no size/)
    expectLine({ BUSHEL_HOME: home }, ['up', '--listen', '0.0.0.0'], /needs an API key/)
    expectLine({ BUSHEL_HOME: home }, ['up', '--model', './nowhere'], /no config\.json/)
    rmSync(home, { recursive: true })
  })

  test('a corrupt GGUF and a truncated one are refused, and nothing is left half-written', () => {
    const home = mkdtempSync(join(tmpdir(), 'bushel-home-'))
    writeFileSync(join(home, 'bad.gguf'), 'GGUFgarbage')
    expectLine({ BUSHEL_HOME: home }, ['up', '--model', join(home, 'bad.gguf')], /bad\.gguf|GGUF/)
    assert.ok(!execFileSync('ls', ['-R', home], { encoding: 'utf8' }).includes('config.json'))
    rmSync(home, { recursive: true })
  })

  test('a port that something else holds is named', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((done) => server.once('listening', done))
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const home = mkdtempSync(join(tmpdir(), 'bushel-home-'))
    expectLine({ BUSHEL_HOME: home }, ['up', '--port', String(port)], /is taken/)
    server.close()
    rmSync(home, { recursive: true })
  })

  test('without Python or uv the launcher says in one line what to install', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bushel-path-'))
    // Everything the launcher itself uses, and nothing else.
    for (const name of ['sh', 'dirname', 'readlink', 'cksum', 'cat', 'mkdir', 'id', 'uname']) {
      symlinkSync(
        execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(),
        join(folder, name),
      )
    }
    const runtime = mkdtempSync(join(tmpdir(), 'bushel-runtime-'))
    const run = spawnSync('/bin/sh', [join(root, 'bushel'), 'setup'], {
      env: { PATH: folder, HOME: folder, BUSHEL_RUNTIME: runtime },
      encoding: 'utf8',
    })
    assert.notEqual(run.status, 0)
    assert.match(run.stderr, /needs Python 3\.11 or newer.*or uv/)
    rmSync(folder, { recursive: true })
    rmSync(runtime, { recursive: true, force: true })
  })
})
