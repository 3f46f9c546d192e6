// bushel kb as a person or a script meets it.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type Server, createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { CliContext } from '../command.ts'
import { runCli } from '../main.ts'

const root = join(import.meta.dirname, '../../..')
const scratch = mkdtempSync(join(tmpdir(), 'bushel-kb-cli-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
/** Nothing listens on port 9. */
const env = { BUSHEL_HOME: join(scratch, 'home'), BUSHEL_PORT: '9' }

interface Ran {
  code: number
  out: string
  notes: string
  json: () => unknown
}

async function kb(args: readonly string[], changes: Partial<CliContext> = {}): Promise<Ran> {
  const out: string[] = []
  const notes: string[] = []
  const code = await runCli(['kb', ...args], {
    env,
    programDir: root,
    ...changes,
    out: {
      result: (text) => void out.push(text),
      json: (value) => void out.push(JSON.stringify(value)),
      note: (text) => void notes.push(text),
      isTty: false,
    },
  })
  const text = out.join('\n')
  return { code, out: text, notes: notes.join('\n'), json: () => JSON.parse(text) as unknown }
}

const ids = (ran: Ran): number[] => (ran.json() as { id: number }[]).map(({ id }) => id)

test('kb search --json prints an array of objects with an id, wherever --json stands', async () => {
  const ran = await kb(['search', 'enable', 'rdma', '--json'])
  assert.equal(ran.code, 0)
  assert.ok(ids(ran).includes(413))
  assert.deepEqual(ids(await kb(['--json', 'search', 'enable', 'rdma'])), ids(ran))
})

test('kb search takes filters, several by comma or by repeating', async () => {
  const both = await kb(['search', 'rdma', '--json', '--tag', 'security,setup'])
  assert.deepEqual(
    ids(await kb(['search', 'rdma', '--json', '--tag', 'security', '--tag', 'setup'])),
    ids(both),
  )
  assert.ok(ids(both).length > 0)
  const found = (
    await kb([
      'search',
      'rdma',
      '--json',
      '--status',
      'disputed',
      '--confidence',
      'low,hypothetical',
    ])
  ).json()
  const hits = found as { status: string; confidence: string }[]
  assert.ok(hits.length > 0)
  for (const hit of hits) {
    assert.equal(hit.status, 'disputed')
    assert.ok(['low', 'hypothetical'].includes(hit.confidence))
  }
  assert.equal(ids(await kb(['search', 'rdma', '--json', '--limit', '3'])).length, 3)
})

test('kb search says how it read misspelt words, and when there is nothing', async () => {
  assert.match((await kb(['search', 'thunderblot'])).notes, /Read "thunderblot" as "thunderbolt"/)
  const nothing = await kb(['search', 'xyzzyplugh', '--json'])
  assert.equal(nothing.code, 0)
  assert.deepEqual(nothing.json(), [])
  assert.match(nothing.notes, /Nothing found for "xyzzyplugh"/)
})

test('kb search survives whatever is typed or pasted', async () => {
  const queries = [
    'rdma AND (',
    '"',
    '*',
    '🚀',
    'claim:rdma',
    "'; drop table",
    `rdma ${'x '.repeat(5_000)}`,
  ]
  for (const query of queries) {
    const ran = await kb(['search', query, '--json'])
    assert.equal(ran.code, 0, query.slice(0, 20))
    assert.ok(Array.isArray(ran.json()))
    assert.doesNotMatch(ran.notes, /\bat .*:\d+:\d+/)
  }
})

test('kb refuses options and commands it does not know, with the usage exit code', async () => {
  for (const args of [
    ['search', 'x', '--status', 'great'],
    ['search', 'x', '--confidence', 'total'],
    ['search', 'x', '--limit', '0'],
    ['search', 'x', '--limit', 'many'],
    ['search'],
    ['detail'],
    ['nonsense'],
  ])
    assert.equal((await kb(args)).code, 2, args.join(' '))
})

test('kb detail shows a finding by any spelling of its id, with relations both ways', async () => {
  const text = await kb(['detail', 'kb#416'])
  for (const part of [
    /^kb#416 {2}corrected/,
    /Evidence/,
    /Why it was corrected/,
    /Sources/,
    /Contradicts\n {2}- kb#2034/,
    /Conflict: Whether to set/,
  ])
    assert.match(text.out, part)
  const data = (await kb(['detail', '416', '--json'])).json() as {
    id: number
    relatedBy: { contradicts: { id: number }[] }
  }
  assert.equal(data.id, 416)
  assert.deepEqual(
    data.relatedBy.contradicts.map((other) => other.id),
    [2034],
  )
})

test('kb detail answers unknown and malformed ids clearly', async () => {
  const unknown = await kb(['detail', '99999'])
  assert.equal(unknown.code, 1)
  assert.match(unknown.notes, /There is no finding 99999; there are \d+, from 58 to \d+/)
  const wrong = await kb(['detail', 'jaccl'])
  assert.equal(wrong.code, 2)
  assert.match(
    wrong.notes,
    /"jaccl" is not the id of a finding, which is a number such as 306; the nearest/,
  )
  assert.equal((await kb(['detail', '9'.repeat(400)])).code, 2)
})

test('kb skill lists topics, gives a digest, and helps with a misspelt name', async () => {
  assert.match((await kb(['skill'])).out, /gpu-distributed/)
  const whole = await kb(['skill', 'gpu-distributed'])
  for (const part of [
    'What to know',
    'Figures',
    'Pitfalls',
    'Questions',
    'Areas',
    'Findings (',
    'kb#549',
  ])
    assert.ok(whole.out.includes(part), part)
  const data = (await kb(['skill', 'exo', '--json'])).json() as {
    questions: { cites: number[] }[]
    findings: { id: number }[]
  }
  assert.ok(data.questions.every((question) => question.cites.length > 0))
  assert.ok(data.findings.some((finding) => finding.id === 341))
  const wrong = await kb(['skill', 'jacl'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.notes, /did you mean jaccl\?/)
})

test('kb conflicts lists all, those of a finding, or one by name', async () => {
  const all = (await kb(['conflicts', '--json'])).json() as { name: string }[]
  assert.ok(all.length >= 12)
  assert.match((await kb(['conflicts', '416'])).out, /Use: Leave it unset \(kb#2034\)/)
  assert.match((await kb(['conflicts', 'zero-copy'])).out, /at the level of MLX no/)
  assert.match((await kb(['conflicts', '2020'])).notes, /No conflict names finding 2020/)
  assert.equal((await kb(['conflicts', 'nonsense'])).code, 1)
})

test('kb stats counts', async () => {
  const stats = (await kb(['stats', '--json'])).json() as { findings: number; index: string }
  assert.ok(stats.findings >= 51 + 60)
  assert.ok(stats.index.startsWith(env.BUSHEL_HOME))
  assert.match((await kb(['stats'])).out, /\d+ findings, \d+ settled conflicts, 12 topics/)
})

test('kb ask without a daemon shows the findings and says so', async () => {
  const ran = await kb(['ask', 'how do I turn on rdma?'])
  assert.equal(ran.code, 0)
  assert.match(
    ran.out,
    /^No Bushel daemon answers at http:\/\/127\.0\.0\.1:9; start one with "bushel up"\./,
  )
  assert.match(ran.out, /kb#413/)
  const strange = await kb(['ask', 'how', 'do', 'I', 'bake', 'bread'])
  assert.match(strange.out, /^I do not know\./)
  assert.equal(
    ((await kb(['ask', 'bread', '--json'])).json() as { kind: string }).kind,
    'not-known',
  )
})

interface FakeDaemon {
  readonly port: string
  readonly asked: {
    model: string
    messages: { content: string }[]
    authorization: string | undefined
  }[]
  close(): void
}

async function fakeDaemon(
  options: { ready?: boolean; content?: unknown; status?: number } = {},
): Promise<FakeDaemon> {
  const asked: FakeDaemon['asked'] = []
  const server: Server = createServer((request, response) => {
    const reply = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (request.url === '/readyz') return reply(options.ready === false ? 503 : 200, {})
    if (request.url === '/v1/models')
      return reply(200, { data: [{ id: 'starter' }, { id: 'large', loaded: true }] })
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { model, messages } = JSON.parse(body) as FakeDaemon['asked'][number]
      asked.push({ model, messages, authorization: request.headers.authorization })
      if (options.status !== undefined)
        reply(options.status, { error: { message: 'out of memory' } })
      else
        reply(200, {
          model,
          choices: [{ message: { role: 'assistant', content: options.content } }],
        })
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { port: String(port), asked, close: () => server.close() }
}

const inRecovery = JSON.stringify({
  known: true,
  statements: [
    { finding: 413, text: 'RDMA is switched on in Recovery, or by prayer [99999].' },
    { finding: 413, text: 'Recovery takes 99 hours and rdma_ctl enable.' },
  ],
})

test('kb ask lets the loaded model answer and takes out what it made up', async (t) => {
  const daemon = await fakeDaemon({ content: inRecovery })
  t.after(() => daemon.close())
  const changes = { env: { ...env, BUSHEL_PORT: daemon.port, BUSHEL_API_KEY: 'secret' } }
  const ran = await kb(['ask', 'how do I turn on rdma?'], changes)
  assert.match(
    ran.out,
    /^RDMA is switched on in Recovery, or by prayer \(kb#413\)\.\n\nAnswered by large from these findings:\n {2}- kb#413/,
  )
  assert.match(ran.notes, /Taken out: kb#\d+, which the model cited/)
  assert.match(ran.notes, /Left out: 1 statement of the model \(names figures of its own\)/)
  assert.equal(daemon.asked[0]?.model, 'large')
  assert.equal(daemon.asked[0]?.authorization, 'Bearer secret')
  await kb(['ask', 'how do I turn on rdma?', '--model', 'other'], changes)
  assert.equal(daemon.asked[1]?.model, 'other')
})

test('kb ask shows the findings when no model is loaded, or when it fails', async (t) => {
  const cases: [Parameters<typeof fakeDaemon>[0], RegExp][] = [
    [{ ready: false }, /^No model is loaded; load one with "bushel load MODEL"\./],
    [{ status: 503 }, /^The model "large" refused: out of memory/],
    [{ content: 42 }, /^The model gave no usable answer: its reply has an unknown form/],
  ]
  for (const [options, expected] of cases) {
    const daemon = await fakeDaemon(options)
    t.after(() => daemon.close())
    const ran = await kb(['ask', 'how do I turn on rdma?'], {
      env: { ...env, BUSHEL_PORT: daemon.port },
    })
    assert.match(ran.out, expected)
    assert.match(ran.out, /kb#413/)
  }
})

test('kb ask finds the daemon by the port in config.toml', async (t) => {
  const daemon = await fakeDaemon({ content: inRecovery })
  t.after(() => daemon.close())
  const home = join(scratch, 'configured')
  mkdirSync(home)
  writeFileSync(join(home, 'config.toml'), `port = ${daemon.port}\n`)
  const ran = await kb(['ask', 'how do I turn on rdma?'], { env: { BUSHEL_HOME: home } })
  assert.match(ran.out, /^RDMA is switched on in Recovery/)
})

test('kb names file and line of a malformed finding and shows no stack', async () => {
  const programDir = join(scratch, 'spoilt')
  cpSync(join(root, 'data/kb'), join(programDir, 'data/kb'), { recursive: true })
  const file = join(programDir, 'data/kb/findings/0413-enable-in-recovery.md')
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace('status = "corrected"', 'status = "corrected'),
  )
  const ran = await kb(['search', 'rdma'], { programDir })
  assert.equal(ran.code, 1)
  assert.match(
    ran.notes,
    /data\/kb\/findings\/0413-enable-in-recovery\.md:4: the head is not valid TOML/,
  )
  assert.doesNotMatch(ran.notes, /\bat .*:\d+:\d+/)
})

test('kb works with a home that cannot be written', async () => {
  const blocked = join(scratch, 'blocked')
  writeFileSync(blocked, '')
  const ran = await kb(['stats', '--json'], { env: { BUSHEL_HOME: blocked } })
  assert.equal((ran.json() as { index: null }).index, null)
})

test('bin/kb runs the launcher beside it, through links and with arguments untouched', () => {
  const home = join(scratch, 'a folder')
  mkdirSync(join(home, 'bin'), { recursive: true })
  mkdirSync(join(home, 'links/deep'), { recursive: true })
  copyFileSync(join(root, 'bin/kb'), join(home, 'bin/kb'))
  chmodSync(join(home, 'bin/kb'), 0o755)
  symlinkSync('../../bin/kb', join(home, 'links/deep/kb'))
  symlinkSync('deep/kb', join(home, 'links/kb'))
  const missing = spawnSync(join(home, 'links/kb'), ['stats'], { encoding: 'utf8' })
  assert.equal(missing.status, 1)
  assert.match(missing.stderr, /^kb: there is no launcher at .*\/a folder\/bushel;/)
  writeFileSync(
    join(home, 'bushel'),
    '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\nexit 7\n',
  )
  chmodSync(join(home, 'bushel'), 0o755)
  const ran = spawnSync(join(home, 'links/kb'), ['search', 'two words', '"$x"'], {
    encoding: 'utf8',
  })
  assert.equal(ran.stdout, '<kb>\n<search>\n<two words>\n<"$x">\n')
  assert.equal(ran.status, 7)
})

test('bin/kb is executable and plain POSIX shell', () => {
  execFileSync('sh', ['-n', join(root, 'bin/kb')])
  const mode = execFileSync('sh', ['-c', `test -x '${join(root, 'bin/kb')}' && echo yes`], {
    encoding: 'utf8',
  })
  assert.equal(mode.trim(), 'yes')
})
