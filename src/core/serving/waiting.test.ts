import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  deploymentOf,
  rosterOf,
  selfOf,
  wishes,
} from '../../../test/support/machine-states.ts'
import { wantedDeployments } from '../cluster/desired.ts'
import type { Failure } from '../cluster/record.ts'
import { deploymentId, groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import { conditionOf } from './waiting.ts'

const failure = (group: string, rank: number, cause: string): Failure => ({
  deployment: deploymentId('tiny'),
  wish: 100,
  group: groupId(group),
  rank,
  cause,
  excused: false,
  atMs: 1000,
})

function detailAfter(failures: readonly Failure[]): { status: string; detail: string } {
  const machine = new HandDriven(selfOf(a), new Map([...rosterOf(a), ...wishes(deploymentOf())]))
  const [deployment] = wantedDeployments(machine.state.registers)
  assert.ok(deployment !== undefined)
  return conditionOf({ ...machine.state, failures }, deployment, 1001)
}

test('conditionOf() translates a known error of JACCL, of the rank that failed first', () => {
  const { status, detail } = detailAfter([
    failure('g1', 1, 'jaccl cannot start: [jaccl] Changing queue pair to RTR failed with errno 22'),
    failure(
      'g1',
      0,
      'the rank ended with exit code 1: RuntimeError: [jaccl] Recv failed with errno=2',
    ),
  ])
  assert.equal(status, 'waiting')
  assert.match(detail, /rank 1 on a said ".*RTR failed with errno 22"/)
  assert.match(detail, /no IPv4 address where JACCL looks/)
  assert.match(detail, /Give both ends of the cable a static IPv4 address.*checks 10, 11, 12/)
  assert.match(detail, /starts again in \d+ s$/)
})

test('conditionOf() finds the known line among the last ones of a log, also when it gives up', () => {
  const cause =
    "the rank ended with exit code 1: [ring] Couldn't connect (error: 65) | Traceback | RuntimeError"
  const groups = Array.from({ length: limits.restartsMax }, (_, index) =>
    failure(`g${index}`, 0, cause),
  )
  const { status, detail } = detailAfter(groups)
  assert.equal(status, 'degraded')
  assert.match(detail, /Local Network privacy stops Bushel.*checks 13, 14, 15.*load it again/)
})

test('conditionOf() leaves an unknown cause as it was said', () => {
  assert.match(detailAfter([failure('g1', 0, 'out of luck')]).detail, /last because out of luck;/)
})
