// Python's own `openai` package against a real daemon that asks for a key: what its users write, run by Python.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { Ollama } from 'ollama'
import { findPythonTool, installPython } from '../../src/cli/setup/python.ts'
import { type TestDaemon, startDaemon } from './daemon.ts'
import { writeEncoder } from './embedder.ts'

const folder = join(import.meta.dirname, 'sdk', 'python')
const runtime = resolve(import.meta.dirname, '..', '..', '.runtime')
const runPython = promisify(execFile)
const key = 'sk-of-the-test'

interface Outcome {
  readonly version: string
  readonly checks: Readonly<Record<string, string | null>>
}

/** An environment of its own beside the runtime's, made once (some 15 s) and again when the lock file changes. */
async function preparePython(): Promise<string> {
  const target = join(runtime, 'test-python')
  const requirements = join(folder, 'requirements.txt')
  const stamp = join(runtime, 'test-python.stamp')
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex')
  const python = join(target, 'bin', 'python')
  if (existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted)
    return python
  mkdirSync(runtime, { recursive: true })
  const { env } = process
  const progress = { phase: () => undefined, update: () => undefined, done: () => undefined }
  await installPython({ tool: findPythonTool(env), target, requirements, env, progress })
  writeFileSync(stamp, wanted)
  return python
}

describe("Python's openai package", () => {
  let models = ''
  let daemon: TestDaemon
  let python = ''

  before(async () => {
    python = await preparePython()
    models = mkdtempSync(join(tmpdir(), 'bushel-python-'))
    writeEncoder(join(models, 'embedder'))
    // An encoder of the BERT family is loaded by name; the chat model comes with the first question.
    const args = ['--model', join(models, 'embedder')]
    daemon = await startDaemon({ args, env: { BUSHEL_API_KEY: key } })
  })

  after(async () => {
    await daemon.stop()
    rmSync(models, { recursive: true })
  })

  test("the same encoder cuts long texts for Ollama's client, unless that would rather know", async () => {
    const headers = { authorization: `Bearer ${key}` }
    const ollama = new Ollama({ host: daemon.url, headers })
    const asked = { model: 'embedder', input: 'cat '.repeat(80) }
    const { embeddings, prompt_eval_count } = await ollama.embed(asked)
    assert.deepEqual([embeddings[0]?.length, prompt_eval_count], [32, 64])
    await assert.rejects(ollama.embed({ ...asked, truncate: false }), /82 tokens.*at most 64/)
  })

  test('does what its users do every day', async (context) => {
    const { stdout, stderr } = await runPython(python, ['-I', join(folder, 'clients.py')], {
      env: { PATH: process.env['PATH'], BUSHEL_URL: daemon.url, BUSHEL_KEY: key },
      timeout: 600_000,
    })
    context.diagnostic(stderr)
    const { checks } = JSON.parse(stdout) as Outcome
    assert.equal(Object.keys(checks).length, 10)
    for (const [name, problem] of Object.entries(checks))
      await context.test(name, () => assert.equal(problem, null, problem ?? ''))
  })
})
