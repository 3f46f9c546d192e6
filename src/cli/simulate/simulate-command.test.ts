import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cli } from '../../../test/support/cli.ts'

test('bushel simulate shows faults, figures and checks, and that everything held', async () => {
  const { code, stdout } = await cli(['simulate', '--seed', '3', '--machines', '2'])
  assert.equal(code, 0)
  assert.match(stdout, /^seed 3: 0\.1 simulated hours in .*trace [0-9a-f]{16}/)
  assert.match(stdout, /\d+ faults\n/)
  assert.match(stdout, /S6 +\d+ +0 +tokens sent are an append-only prefix/)
  assert.match(stdout, /Everything held\./)
})

test('bushel simulate fails with the command that shows a violation again', async () => {
  const words = ['simulate', '--seed', '4', '--machines', '2', '--plant', 'volatileEpoch']
  const { code, stdout } = await cli(words)
  assert.equal(code, 1)
  assert.match(stdout, /seed 4, [\d.]+ s: S2 broken: /)
  assert.match(stdout, / {2}bushel simulate --seed 4 --machines 2 --plant volatileEpoch --trace/)
})

test('bushel simulate --trace prints every event of a seed', async () => {
  const { code, stdout } = await cli(['simulate', '--seed', '3', '--machines', '2', '--trace'])
  assert.equal(code, 0)
  assert.match(stdout, /boots life 1/)
  assert.match(stdout, /world healed/)
})

test('bushel simulate --trace asks for the seed', async () => {
  const { code, stderr } = await cli(['simulate', '--trace'])
  assert.equal(code, 2)
  assert.match(stderr, /name it with --seed/)
})

test('bushel simulate --json prints one document', async () => {
  const { stdout } = await cli(['simulate', '--seeds', '2', '--machines', '1', '--twice', '--json'])
  const summary = JSON.parse(stdout) as {
    seeds: number
    violations: unknown[]
    different: unknown[]
  }
  assert.equal(summary.seeds, 2)
  assert.deepEqual(summary.violations, [])
  assert.deepEqual(summary.different, [])
})

test('bushel simulate --planted says which seed catches a bug', async () => {
  const words = ['simulate', '--planted', '--plant', 'volatileEpoch', '--from', '4', '--seeds', '1']
  const { code, stdout } = await cli([...words, '--threads', '1'])
  assert.equal(code, 0)
  assert.match(stdout, /volatileEpoch +S2 +4 +1 of 1 +passes +the highest epoch is kept in memory/)
})

for (const words of [
  ['--seeds', '0'],
  ['--seed', 'x'],
  ['--plant', 'nonsense'],
]) {
  test(`bushel simulate ${words.join(' ')} is refused`, async () => {
    const { code, stdout } = await cli(['simulate', ...words])
    assert.equal(code, 2)
    assert.equal(stdout, '')
  })
}
