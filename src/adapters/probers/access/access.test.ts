// The real machine behind the port, recordings of it, and folders of captures.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { textOf } from '../outcome.ts'
import {
  CaptureFolderError,
  readCaptureFolder,
  readCaptureFolders,
  writeCaptureFolder,
} from './capture-folder.ts'
import { createRealAccess } from './real-access.ts'
import { captureName, record, replay } from './recording.ts'

const access = createRealAccess(process.env)
const run = (argv: string[], timeoutMs = 5000) => access.runCommand(argv, { timeoutMs })

test('runCommand() gives both streams and the exit code', async () => {
  assert.deepEqual(await run(['sh', '-c', 'echo out; echo err >&2; exit 3']), {
    kind: 'exited',
    exitCode: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  })
})

test('runCommand() says that a tool is missing', async () => {
  assert.deepEqual(await run(['bushel-no-such-tool']), { kind: 'missing' })
})

test('runCommand() gives up on a program that hangs, and ends its helpers with it', async () => {
  const marker = `bushel-hang-${process.pid}`
  const began = performance.now()
  const outcome = await run(['sh', '-c', `trap '' TERM; sh -c 'sleep 30; : ${marker}' & wait`], 200)
  assert.deepEqual(outcome, { kind: 'timed-out', afterMs: 200 })
  assert.ok(performance.now() - began < 2000)
  await sleep(900)
  const left = await run(['pgrep', '-f', `sleep 30; : ${marker}`])
  assert.ok(left.kind === 'exited' && left.stdout === '', 'the helper is gone')
})

test('runCommand() gives no input, so a program that asks for a password ends', async () => {
  const outcome = await run([
    'sh',
    '-c',
    'read -r answer || { echo "sudo: a password is required" >&2; exit 1; }',
  ])
  const fact = textOf('sudo', outcome)
  assert.ok(!fact.known)
  assert.equal(fact.why.kind, 'needs-admin')
})

test('runCommand() asks every program to speak the same language', async () => {
  const outcome = await createRealAccess({ ...process.env, LC_ALL: 'de_DE.UTF-8' }).runCommand(
    ['sh', '-c', 'echo $LC_ALL'],
    { timeoutMs: 5000 },
  )
  assert.ok(outcome.kind === 'exited')
  assert.equal(outcome.stdout, 'C\n')
})

test('textOf() tells silence, failure and a missing capture apart', () => {
  const kind = (fact: ReturnType<typeof textOf>): string => (fact.known ? 'known' : fact.why.kind)
  const exited = { kind: 'exited', exitCode: 0, stdout: '', stderr: '' } as const
  assert.equal(kind(textOf('x', exited)), 'empty')
  assert.equal(kind(textOf('x', { ...exited, exitCode: 1, stderr: 'boom' })), 'tool-failed')
  assert.equal(kind(textOf('x', { kind: 'not-captured' })), 'not-captured')
  assert.equal(kind(textOf('x', { ...exited, stdout: 'a' })), 'known')
})

test('connectTcp() tells an open port from a closed one', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const target = { host: '127.0.0.1', port: address.port, timeoutMs: 2000 }
  assert.deepEqual(await access.connectTcp(target), { kind: 'connected' })
  await new Promise((resolve) => server.close(resolve))
  assert.deepEqual(await access.connectTcp(target), { kind: 'failed', code: 'ECONNREFUSED' })
})

test('captureName() makes file names that people can read, and short ones of scripts', () => {
  assert.equal(
    captureName(['/usr/libexec/ApplicationFirewall/socketfilterfw', '--listapps']),
    'socketfilterfw_--listapps',
  )
  assert.equal(captureName(['ifconfig', '-a']), 'ifconfig_-a')
  assert.equal(captureName(['cat', '/etc/../passwd']), 'cat_~etc~..~passwd')
  assert.match(captureName(['python', '-c', 'x'.repeat(500)]), /^python_-c_500-[0-9a-f]{8}$/)
  assert.notEqual(captureName(['a', 'x'.repeat(500)]), captureName(['a', 'y'.repeat(500)]))
})

test('a recording written to a folder and read again answers as the machine did', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-captures-'))
  try {
    const recorder = record(access)
    const argvs = [
      ['sh', '-c', 'echo hello'],
      ['sh', '-c', 'exit 4'],
      ['bushel-no-such-tool'],
      ['sleep', '9'],
    ]
    for (const argv of argvs) await recorder.access.runCommand(argv, { timeoutMs: 300 })
    await recorder.access.readText('/proc/self/cgroup')
    await recorder.access.readText('/no/such/file')
    await recorder.access.listFolder('/sys/class/net')
    await recorder.access.connectTcp({ host: '127.0.0.1', port: 1, timeoutMs: 500 })
    await recorder.access.listAddresses()
    const recording = recorder.recording()
    const description = {
      platform: 'linux',
      outcomes: {},
      files: {},
      folders: {},
      connections: {},
      addresses: [],
    } as const
    await writeCaptureFolder(join(folder, 'here'), {
      description: { ...description, addresses: [] },
      recording,
    })
    const again = replay((await readCaptureFolder(join(folder, 'here'))).recording)
    const before = replay(recording)
    for (const argv of argvs)
      assert.deepEqual(
        await again.runCommand(argv, { timeoutMs: 1 }),
        await before.runCommand(argv, { timeoutMs: 1 }),
      )
    for (const path of ['/proc/self/cgroup', '/no/such/file', '/never/asked'])
      assert.deepEqual(await again.readText(path), await before.readText(path))
    assert.deepEqual(
      await again.listFolder('/sys/class/net'),
      await before.listFolder('/sys/class/net'),
    )
    assert.deepEqual(await again.listAddresses(), await before.listAddresses())
    assert.deepEqual(await again.connectTcp({ host: '127.0.0.1', port: 1, timeoutMs: 1 }), {
      kind: 'failed',
      code: 'ECONNREFUSED',
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('readCaptureFolders() explains what is wrong with a folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-captures-'))
  try {
    await assert.rejects(
      readCaptureFolders(folder),
      /holds no captures: put the outputs of each machine/,
    )
    await mkdir(join(folder, 'mini'))
    await writeFile(join(folder, 'mini', 'ps.txt'), 'x\n')
    await assert.rejects(readCaptureFolders(folder), /Cannot tell which system/)
    await writeFile(join(folder, 'mini', 'machine.json'), '{"platform": "amiga"}')
    await assert.rejects(
      readCaptureFolders(folder),
      (error) => error instanceof CaptureFolderError && /machine\.json/.test(error.message),
    )
    await assert.rejects(readCaptureFolders(join(folder, 'nowhere')), /Cannot read captures/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
