// Real lines from rank logs and crash reports, and what they are translated to.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolCapture } from '../../../test/support/captures.ts'
import { explainCause, explainFailure, knownErrors, translateRankLog } from './rank-log.ts'
import { allChecks } from './run-doctor.ts'

const idsOf = (text: string): readonly string[] =>
  translateRankLog(text.split('\n')).map((one) => one.id)

test('translateRankLog() knows every collected error line', () => {
  const expected: readonly (readonly [RegExp, string | null])[] = [
    [/RTR failed with errno 22/, 'rtr-22'],
    [/RTR failed with errno 96/, 'rtr-96'],
    [/RTR failed with errno 60/, 'rtr-60'],
    [/Recv failed with errno=2\b/, 'peer-closed'],
    [/Recv failed with errno=60/, 'recv-60'],
    [/error code -12/, 'recv-failed'],
    [/Couldn't connect \(error: 60\)/, 'connect-60'],
    [/protection domain/, 'protection-domain'],
    [/Creating the queue pair/, 'queue-pairs'],
    [/No IPv4-mapped GID/, 'no-ipv4-gid'],
    // mlx.launch says only that a rank ended, which explains nothing.
    [/Node with rank 1 exited/, null],
    [/kIOGPU/, 'gpu-timeout'],
    [/RDMA enabled/, 'rdma-off'],
  ]
  const lines = toolCapture('jaccl-errors.real-lines.txt')
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
  assert.equal(lines.length, expected.length)
  for (const [index, [pattern, id]] of expected.entries()) {
    const line = lines[index]?.split('\t')[0] ?? ''
    assert.match(line, pattern)
    assert.equal(translateRankLog([line])[0]?.id ?? null, id, line)
  }
})

test('translateRankLog() reads errors in logs of other programs and in crash reports', () => {
  assert.deepEqual(idsOf(toolCapture('exo-runner-log.rtr-errno22.excerpt.txt')), ['rtr-22'])
  assert.deepEqual(idsOf(toolCapture('crash-backtraces.jaccl.excerpt.txt')), [
    'memory-region-crash',
    'cable-pulled',
  ])
})

test('translateRankLog() tells the two ways of not connecting apart', () => {
  assert.deepEqual(idsOf("RuntimeError: [jaccl] Couldn't connect (error: 65)"), ['connect-65'])
  assert.deepEqual(idsOf("RuntimeError: [ring] Couldn't connect (error: 111)"), ['connect-60'])
})

test('translateRankLog() says an error once and nothing about lines it does not know', () => {
  const lost = '[ring] Socket 12 was closed by the peer'
  assert.deepEqual(
    idsOf(
      [lost, lost, 'Loading model…', 'RuntimeError: [ring] connection to a peer was lost'].join(
        '\n',
      ),
    ),
    ['ring-peer-lost'],
  )
  assert.deepEqual(translateRankLog(['all is well', '']), [])
})

test('explainFailure() shows the cause, not the ranks that fell with it', () => {
  const found = explainFailure([
    { rank: 0, machine: 'studio', lines: ['RuntimeError: [jaccl] Recv failed with errno=2'] },
    {
      rank: 1,
      machine: 'book',
      lines: ['[jaccl] Changing queue pair to RTR failed with errno 22'],
    },
  ])
  assert.equal(found?.machine, 'book')
  assert.equal(found?.id, 'rtr-22')
  assert.deepEqual(found?.checks, [10, 11, 12])
  assert.equal(explainFailure([]), null)
})

test('knownErrors() names only checks that exist', () => {
  const numbers = new Set(allChecks.map((check) => check.number))
  for (const row of knownErrors)
    for (const number of row.checks) assert.ok(numbers.has(number), `${row.id} ${number}`)
  assert.equal(new Set(knownErrors.map((row) => row.id)).size, knownErrors.length)
})

test('explainCause() adds the meaning to a known error and leaves others alone', () => {
  assert.equal(explainCause('the machine was switched off'), 'the machine was switched off')
  assert.match(
    explainCause('the rank ended with exit code 1: x | [jaccl] No IPv4-mapped GID for this device'),
    /^the rank ended.*\. This means: the Thunderbolt port has no IPv4 address\. Give the port.*check 11\)$/,
  )
})
