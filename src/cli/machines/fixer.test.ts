// Fixes: agreed one by one, written down before they happen, taken back in full.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type DoctorJournal, createDoctorJournal } from '../../adapters/doctor-journal.ts'
import type { Finding, Fix } from '../../core/doctor/finding.ts'
import type { CommandOutcome } from '../../ports/machine-access.ts'
import { withSickness } from '../../../test/support/sick-macs.ts'
import { type FixerComponents, applyFixes, localFixes, undoChanges } from './fixer.ts'

const ok: CommandOutcome = { kind: 'exited', exitCode: 0, stdout: '', stderr: '' }

async function withJournal(
  run: (journal: DoctorJournal, path: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bushel-doctor-'))
  try {
    const path = join(folder, 'doctor', 'changes.json')
    await run(createDoctorJournal(path), path)
  } finally {
    await rm(folder, { recursive: true })
  }
}

interface Bench {
  readonly components: FixerComponents
  readonly ran: string[]
  readonly said: string[]
}

function bench(
  journal: DoctorJournal,
  answers: readonly boolean[] = [],
  outcome: (command: string) => CommandOutcome = () => ok,
): Bench {
  const ran: string[] = []
  const said: string[] = []
  const left = [...answers]
  let now = 1000
  return {
    ran,
    said,
    components: {
      journal,
      isRoot: false,
      nowMs: () => now++,
      say: (text) => void said.push(text),
      confirm: async () => left.shift() ?? true,
      runCommand: async (argv) => {
        ran.push(argv.join(' '))
        return outcome(argv.join(' '))
      },
    },
  }
}

/** Two ailments of one Mac that can be set right here. */
async function offers(): Promise<ReturnType<typeof localFixes>> {
  const { findings } = await withSickness({
    studio: {
      'pmset_-g': (text) => text.replace('sleep                0', 'sleep                10'),
      'route_-n_get_192.168.0.2': '  interface: en0\n',
    },
  })
  return localFixes(findings, 'studio')
}

test('localFixes() leaves out what is wrong on other machines', async () => {
  const { findings } = await withSickness({
    book: {
      'pmset_-g': (text) => text.replace('sleep                0', 'sleep                10'),
    },
  })
  assert.equal(localFixes(findings, 'studio').length, 0)
  assert.equal(localFixes(findings, 'book').length, 1)
})

test('applyFixes() shows commands and their opposite before it asks, and never lets sudo ask', async () => {
  await withJournal(async (journal) => {
    const { components, ran, said } = bench(journal, [true, false])
    const report = await applyFixes(components, await offers())
    assert.deepEqual(report.applied, ['send packets for 192.168.0.2 over en4'])
    assert.deepEqual(report.declined, ['keep studio awake on mains power'])
    assert.deepEqual(ran, ['sudo -n route -n change 192.168.0.2 -interface en4'])
    assert.match(
      said[0] ?? '',
      /would send packets.*\n {4}sudo route -n change 192\.168\.0\.2 -interface en4\n {2}taken back by:\n {4}sudo route -n change 192\.168\.0\.2 -interface en0/,
    )
    assert.equal((await journal.list()).length, 1)
  })
})

test('undoChanges() takes everything back, latest first, and only once', async () => {
  await withJournal(async (journal) => {
    const { components, ran } = bench(journal)
    await applyFixes(components, await offers())
    ran.length = 0
    const report = await undoChanges(components)
    assert.deepEqual(ran, [
      'sudo -n pmset -c sleep 10',
      'sudo -n route -n change 192.168.0.2 -interface en0',
    ])
    assert.equal(report.applied.length, 2)
    ran.length = 0
    assert.deepEqual((await undoChanges(components)).applied, [])
    assert.deepEqual(ran, [])
    assert.deepEqual(
      (await journal.list()).map((change) => change.state),
      ['undone', 'undone'],
    )
  })
})

test('applyFixes() has the change on record before the first command runs', async () => {
  await withJournal(async (journal, path) => {
    let recorded = ''
    const { components } = bench(journal)
    const watching: FixerComponents = {
      ...components,
      runCommand: async () => {
        recorded = await readFile(path, 'utf8')
        return ok
      },
    }
    await applyFixes(watching, (await offers()).slice(0, 1))
    assert.match(recorded, /"state": "begun"/)
  })
})

test('applyFixes() says what to do when a password is wanted, and changes nothing', async () => {
  await withJournal(async (journal) => {
    const { components } = bench(journal, [], () => ({
      kind: 'exited',
      exitCode: 1,
      stdout: '',
      stderr: 'sudo: a password is required',
    }))
    const report = await applyFixes(components, (await offers()).slice(0, 1))
    assert.equal(report.applied.length, 0)
    assert.match(report.failed[0]?.why ?? '', /run "sudo bushel doctor --fix"/)
    assert.deepEqual(
      (await journal.list()).map((change) => change.state),
      ['failed'],
    )
    assert.deepEqual((await undoChanges(components)).applied, [])
  })
})

test('applyFixes() takes back the first half of a fix whose second half fails', async () => {
  await withJournal(async (journal) => {
    const command = (text: string) => ({ argv: text.split(' '), admin: false })
    const fix: Fix = {
      machine: 'studio',
      summary: 'two steps',
      commands: [command('step one'), command('step two')],
      undo: [command('step back')],
      lasting: 'a test',
    }
    const finding = { check: 'sleep', number: 17, evidence: 'x' } as Finding
    const { components, ran } = bench(journal, [], (text) =>
      text === 'step two' ? { kind: 'timed-out', afterMs: 1 } : ok,
    )
    const report = await applyFixes(components, [{ finding, fix }])
    assert.equal(report.failed.length, 1)
    assert.deepEqual(ran, ['step one', 'step two', 'step back'])
    assert.deepEqual(
      (await journal.list()).map((change) => change.state),
      ['failed'],
    )
  })
})

test('undoChanges() keeps on record what it could not take back', async () => {
  await withJournal(async (journal) => {
    const first = bench(journal)
    await applyFixes(first.components, await offers())
    const stubborn = bench(journal, [], (text) =>
      text.includes('pmset') ? { kind: 'exited', exitCode: 1, stdout: '', stderr: 'no' } : ok,
    )
    const report = await undoChanges(stubborn.components)
    assert.equal(report.applied.length, 1)
    assert.equal(report.failed.length, 1)
    const again = bench(journal)
    assert.deepEqual((await undoChanges(again.components)).applied, [
      'keep studio awake on mains power',
    ])
  })
})

test('createDoctorJournal() refuses a file that is not its own instead of writing over it', async () => {
  await withJournal(async (journal, path) => {
    assert.deepEqual(await journal.list(), [])
    const { components } = bench(journal)
    await applyFixes(components, (await offers()).slice(0, 1))
    await writeFile(path, '{"shopping": ["cables"]}')
    await assert.rejects(journal.list(), /is not a record of changes/)
    await assert.rejects(
      applyFixes(components, (await offers()).slice(0, 1)),
      /is not a record of changes/,
    )
    assert.match(await readFile(path, 'utf8'), /cables/)
  })
})
