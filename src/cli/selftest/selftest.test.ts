// The self-test run here, its file, and the way back into a fixture.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCaptureFolders } from '../../adapters/probers/access/capture-folder.ts'
import { probeAll } from '../../../test/support/captures.ts'
import { cli } from '../../../test/support/cli.ts'
import { withoutMlx } from '../../../test/support/python.ts'
import { type SelftestBundle, selftestBundle } from '../../wire/selftest-bundle.ts'

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-selftest-'))
  try {
    await run(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const skip = process.platform !== 'linux' && process.platform !== 'darwin' && 'needs macOS or Linux'

test(
  'bushel selftest writes a file that names nobody and imports as a fixture with measured rows',
  { skip },
  async () => {
    await inFolder(async (folder) => {
      const file = join(folder, 'My Machine.json')
      const run = await cli(['selftest', '--bundle', file, '--word', 'harvest'])
      assert.equal(run.code, 0, run.stderr)
      const text = await readFile(file, 'utf8')
      const bundle = selftestBundle.parse(JSON.parse(text))
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      for (const name of [hostname(), userInfo().username].filter(
        (one) => one.length > 4 && one !== 'root',
      ))
        assert.ok(!text.includes(name), 'a name is left')
      assert.deepEqual(
        bundle.steps.map((step) => [step.id, step.outcome.kind]),
        [
          ['doctor', 'ran'],
          ['telemetry', 'ran'],
          ['local-ring', withoutMlx === false ? 'ran' : 'skipped'],
          ['link-probes', 'skipped'],
          ['ring-start', 'skipped'],
          ['jaccl-start', 'skipped'],
          ['kill-test', 'skipped'],
          ['resume-match', 'skipped'],
        ],
      )
      for (const { outcome } of bundle.steps)
        if (outcome.kind === 'skipped') assert.ok(outcome.reason.length > 20)
      const imported = await cli([
        'fixtures',
        'import',
        file,
        '--into',
        join(folder, 'fixtures'),
        '--json',
      ])
      assert.equal(imported.code, 0, imported.stderr)
      const report = JSON.parse(imported.stdout) as {
        folder: string
        machines: string[]
        measured: { what: string }[]
      }
      assert.equal(report.folder, join(folder, 'fixtures', 'my-machine'))
      const machines = await readCaptureFolders(report.folder)
      assert.equal(machines[0]?.description.provenance?.class, 'real')
      const [facts] = await probeAll(machines)
      assert.ok(facts?.memory.totalBytes.known === true || facts?.platform === 'macos')
      const rows = (await readFile(join(report.folder, 'measured.jsonl'), 'utf8'))
        .trim()
        .split('\n')
      assert.equal(rows.length, report.measured.length)
      if (withoutMlx === false) assert.ok(report.measured.some((row) => row.what === 'all-sum-4B'))
      const again = await cli(['fixtures', 'import', file, '--into', join(folder, 'fixtures')])
      assert.match(again.stderr, /exists already/)
    })
  },
)

test('bushel fixtures import refuses files that are not its own and names that leave the folder', async () => {
  await inFolder(async (folder) => {
    const file = join(folder, 'bad.json')
    await writeFile(file, '{"format":"something"}')
    assert.match(
      (await cli(['fixtures', 'import', file])).stderr,
      /is not a file of "bushel selftest"/,
    )
    assert.match(
      (await cli(['fixtures', 'import', join(folder, 'none.json')])).stderr,
      /Cannot read/,
    )
    const bundle: SelftestBundle = {
      format: 'bushel-selftest',
      version: 1,
      bushel: '0',
      day: '2026-01-01',
      machines: [
        {
          label: 'm',
          platform: 'linux',
          observedAtMs: 0,
          self: null,
          commands: [
            {
              argv: ['../../evil', '../x'],
              stdout: 'hi\n',
              outcome: { kind: 'exited', exitCode: 0, stderr: '' },
            },
          ],
          files: {},
          folders: {},
          connections: {},
          addresses: [],
        },
      ],
      steps: [],
      diagnosis: [],
    }
    await writeFile(
      file,
      JSON.stringify({ ...bundle, machines: [{ ...bundle.machines[0], label: '../up' }] }),
    )
    assert.match((await cli(['fixtures', 'import', file])).stderr, /machines\.0\.label/)
    await writeFile(file, JSON.stringify(bundle))
    assert.match(
      (await cli(['fixtures', 'import', file, '--into', folder, '--name', '../up'])).stderr,
      /is no name for a folder/,
    )
    const fine = await cli(['fixtures', 'import', file, '--into', folder, '--name', 'fine'])
    assert.equal(fine.code, 0, fine.stderr)
    assert.deepEqual((await readdir(join(folder, 'fine', 'm'))).toSorted(), [
      'evil_..~x.txt',
      'machine.json',
    ])
  })
})
