import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseProcesses, ranksOf } from './processes.ts'

const table = `  1     0 /sbin/init
 20     1 /opt/bushel/node_modules/.bin/node --disable-warning=ExperimentalWarning /opt/bushel/src/cli/main.ts up --name studio
 21    20 /opt/bushel/.runtime/python/bin/python -m bushel_worker --home /home/anna/.bushel
 30     1 /opt/bushel/.runtime/python/bin/python -m bushel_worker --home /home/anna/.bushel
 40     1 python -I /opt/bushel/worker/bushel_worker/launch_keeper.py /home/anna/.bushel/launches/x
`

test('ranksOf() claims the ranks of a running daemon, and leaves those that were left to the doctor', () => {
  const ranks = ranksOf(parseProcesses(table), null)
  assert.deepEqual(ranks, {
    known: true,
    value: [
      { pid: 21, parentPid: 20, expected: true },
      { pid: 30, parentPid: 1, expected: null },
    ],
  })
})
