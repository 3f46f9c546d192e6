import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MachineId, machineId } from '../core/ids.ts'
import { endLeftRanks, rankArguments, ranksIn } from './left-ranks.ts'

function rankOf(machine: MachineId): ChildProcess {
  return spawn(
    process.execPath,
    ['-e', 'setInterval(() => {}, 1e6)', '--', ...rankArguments(machine)],
    {
      stdio: 'ignore',
    },
  )
}

test('endLeftRanks() ends a rank of its machine that was stopped, and leaves those of others alone', async () => {
  const mine = machineId(process.pid.toString(16).padStart(32, '0'))
  const another = machineId(process.pid.toString(16).padStart(32, 'f'))
  const left = rankOf(mine)
  const other = rankOf(another)
  try {
    await Promise.all([once(left, 'spawn'), once(other, 'spawn')])
    left.kill('SIGSTOP')
    const ended = once(left, 'exit')
    assert.deepEqual(await endLeftRanks(mine), [left.pid])
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    assert.deepEqual(await endLeftRanks(mine), [])
    assert.equal(other.exitCode ?? other.signalCode, null)
  } finally {
    for (const child of [left, other]) child.kill('SIGKILL')
  }
})

test('ranksIn() takes no other program that speaks of a rank for one', () => {
  const mine = machineId('a'.repeat(32))
  const table = [
    `  10 /py -m bushel_worker --machine ${mine}`,
    `  11 vim -m bushel_worker --machine ${mine} notes`,
    `  12 /py -m bushel_worker --machine ${mine}0`,
    '  13 /py -m bushel_worker.importer a b',
    'not a line of ps',
  ].join('\n')
  assert.deepEqual(ranksIn(table, mine), [10])
})
