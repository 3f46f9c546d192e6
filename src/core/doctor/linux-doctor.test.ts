// Linux and NVIDIA checks on a captured machine with one thing changed at a time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf } from '../../../test/support/captures.ts'
import { troubles } from '../../../test/support/diagnosis.ts'
import { known, unknown } from '../machine-facts/fact.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'
import { diagnose } from './run-doctor.ts'

async function h200(): Promise<MachineFacts> {
  const facts = (await factsOf('linux'))['h200']
  assert.ok(facts !== undefined)
  const runtime = known({
    python: '3.11.9',
    mlx: '0.32.4',
    mlxLm: '0.32.2',
    backends: ['ring', 'nccl'],
  })
  return { ...facts, runtime, ranks: { ...facts.ranks, processes: known([]) } }
}

const look = (facts: MachineFacts): readonly string[] =>
  troubles(diagnose({ machines: [facts], paths: [], links: [] }))

test('diagnose() finds nothing wrong with the captured H200', async () => {
  assert.deepEqual(look(await h200()), [])
})

test('diagnose() names each Linux and NVIDIA ailment alone', async () => {
  const healthy = await h200()
  assert.ok(healthy.interfaces.known && healthy.gpus.known)
  const [eth0, ...others] = healthy.interfaces.value
  const [gpu] = healthy.gpus.value
  assert.ok(eth0 !== undefined && gpu !== undefined)
  const cases: readonly (readonly [string, Partial<MachineFacts>])[] = [
    ['31 h200 warn', { memory: { ...healthy.memory, groupLimitBytes: known(8e9) } }],
    ['31 h200 warn', { memory: { ...healthy.memory, groupCpus: known(2) } }],
    ['32 h200 warn', { interfaces: known([{ ...eth0, speedMbps: known(100) }, ...others]) }],
    ['32 h200 fail', { interfaces: known([{ ...eth0, duplex: known('half') }, ...others]) }],
    [
      '33 h200 unknown',
      { runtime: unknown('tool-missing', 'no Python runtime of Bushel is installed here') },
    ],
    ['34 h200 fail', { gpus: unknown('timed-out', 'nvidia-smi did not answer within 10 s') }],
    ['35 h200 warn', { gpus: known([{ ...gpu, memoryFreeBytes: known(1e9) }]) }],
    [
      '36 h200 warn',
      { runtime: known({ python: '3.11.9', mlx: '0.32.4', mlxLm: '0.32.2', backends: ['ring'] }) },
    ],
  ]
  for (const [expected, change] of cases)
    assert.deepEqual(look({ ...healthy, ...change }), [expected])
})

test('diagnose() does not complain about shared memory of a GB10', async () => {
  const healthy = await h200()
  assert.ok(healthy.gpus.known)
  const gpus = known(
    healthy.gpus.value.map((gpu) => ({
      ...gpu,
      unifiedMemory: true,
      memoryTotalBytes: unknown('not-printed', '[N/A]'),
      memoryFreeBytes: unknown('not-printed', '[N/A]'),
    })),
  )
  assert.deepEqual(look({ ...healthy, gpus }), [])
})
