import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endLeftRanks, rankArguments, ranksIn } from './left-ranks.ts'

function rankOf(home: string): ChildProcess {
  return spawn(
    process.execPath,
    ['-e', 'setInterval(() => {}, 1e6)', '--', ...rankArguments(home)],
    {
      stdio: 'ignore',
    },
  )
}

test('endLeftRanks() ends a rank of its home that was stopped, and leaves those of others alone', async () => {
  const home = `/tmp/bushel-left-${process.pid}`
  const left = rankOf(home)
  const other = rankOf(`${home}-2`)
  try {
    await Promise.all([once(left, 'spawn'), once(other, 'spawn')])
    left.kill('SIGSTOP')
    const ended = once(left, 'exit')
    assert.deepEqual(await endLeftRanks(home), [left.pid])
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    assert.deepEqual(await endLeftRanks(home), [])
    assert.equal(other.exitCode ?? other.signalCode, null)
  } finally {
    for (const child of [left, other]) child.kill('SIGKILL')
  }
})

test('ranksIn() takes no other program that speaks of a rank for one', () => {
  const table = [
    '  10 /py -m bushel_worker --home /home/me/.bushel',
    '  11 vim -m bushel_worker --home /home/me/.bushel/notes',
    '  12 /py -m bushel_worker --home /home/me/.bushel2',
    '  13 /py -m bushel_worker.importer a b',
    'not a line of ps',
  ].join('\n')
  assert.deepEqual(ranksIn(table, '/home/me/.bushel'), [10])
})
