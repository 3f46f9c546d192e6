// Bushel as an installed package: what "npm pack" makes installs elsewhere, starts, and answers.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'

const root = resolve(import.meta.dirname, '..', '..')

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

describe('the package', () => {
  let folder = ''
  const bushel = (): string => join(folder, 'app', 'node_modules', '.bin', 'bushel')
  const env = (): NodeJS.ProcessEnv => ({
    ...process.env,
    BUSHEL_HOME: join(folder, 'home'),
    // The same Python as in the checkout: what is tested is the package, not another download.
    BUSHEL_RUNTIME: join(root, '.runtime'),
  })

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'bushel-package-'))
    for (const name of ['out', 'app', 'home/models/demo'])
      mkdirSync(join(folder, name), { recursive: true })
    const npm = (args: readonly string[], cwd: string): string =>
      execFileSync('npm', [...args, '--loglevel=error'], { cwd, encoding: 'utf8' })
    npm(['pack', '--pack-destination', join(folder, 'out')], root)
    const [tarball = ''] = readdirSync(join(folder, 'out'))
    npm(
      ['install', '--no-audit', '--no-fund', '--ignore-scripts', join(folder, 'out', tarball)],
      join(folder, 'app'),
    )
    writeFileSync(join(folder, 'home/models/demo/script.json'), '{"layers":8}')
  })

  after(() => {
    rmSync(folder, { recursive: true, force: true })
    rmSync(join(root, 'dist'), { recursive: true, force: true })
  })

  test('says its version, and finds its knowledge', () => {
    assert.match(execFileSync(bushel(), ['version'], { env: env(), encoding: 'utf8' }), /Node v26/)
    const found = execFileSync(bushel(), ['kb', 'search', 'thunderbolt'], {
      env: env(),
      encoding: 'utf8',
    })
    assert.match(found, /kb#/)
  })

  test('starts, answers, shows its page and stops', async () => {
    // The peers' port is the next one.
    const port = await freePort()
    const daemon = spawn(bushel(), ['up', '--model', 'demo', '--port', String(port)], {
      env: env(),
      stdio: 'ignore',
    })
    try {
      const url = `http://127.0.0.1:${port}`
      const ready = async (): Promise<boolean> =>
        fetch(`${url}/readyz`).then(
          (response) => response.ok,
          () => false,
        )
      const until = performance.now() + 60_000
      while (!(await ready()) && performance.now() < until)
        await new Promise((done) => setTimeout(done, 200))
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'demo',
          messages: [{ role: 'user', content: 'hello' }],
          max_tokens: 4,
        }),
      })
      assert.equal(response.status, 200, await response.clone().text())
      const page = await fetch(`${url}/`)
      assert.match(await page.text(), /<title>Bushel/)
    } finally {
      execFileSync(bushel(), ['stop', '--now'], { env: env(), encoding: 'utf8' })
      await new Promise((done) => {
        if (daemon.exitCode !== null || daemon.signalCode !== null) done(null)
        else daemon.once('exit', done)
      })
    }
  })
})
