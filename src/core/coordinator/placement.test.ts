import assert from 'node:assert/strict'
import { deploymentOf } from '../../../test/support/machine-states.ts'
import { describe, test } from 'node:test'
import * as fc from 'fast-check'
import type { WantedDeployment } from '../cluster/desired.ts'
import type { ModelCut } from '../cluster/group-plan.ts'
import type { MachineRecord } from '../cluster/record.ts'
import { deploymentId, groupId, machineId, modelDigest } from '../ids.ts'
import { type PlacementOutcome, placeDeployment } from './placement.ts'
import { apportion, isAsWished } from './shapes.ts'

const digest = modelDigest('d'.repeat(64))
const cut: ModelCut = {
  pipeline: true,
  tensor: 'even',
  expert: false,
  heads: 32,
  kvHeads: 8,
  experts: 0,
  edgeFraction: 0.1,
  tied: false,
}
const model = {
  name: 'big',
  digest,
  architecture: 'llama',
  layers: 60,
  weightsBytes: 30e9,
  parameters: 60e9,
  kvBytesPerToken: 100_000,
  contextTokens: 8192,
  defaults: {},
  cut,
}
const id = (name: string): ReturnType<typeof machineId> => machineId(name.repeat(64).slice(0, 64))

function wish(change: Partial<WantedDeployment> = {}): WantedDeployment {
  const version = { counter: 1, machine: id('a'), boot: 'b' }
  const big = deploymentOf({ id: deploymentId('big'), model, contextTokens: 8192 })
  return { ...big, version, ...change }
}

function record(name: string, lendGb: number, change: Partial<MachineRecord> = {}): MachineRecord {
  return {
    id: id(name),
    name,
    role: 'always',
    boot: 'b',
    incarnation: 1,
    revision: 1,
    version: '1.0.0',
    platform: 'darwin-arm64',
    computesIn: 'stored',
    memoryLendBytes: lendGb * 1e9,
    models: [model],
    holdings: [],
    failures: [],
    epochSeen: { counter: 1, machine: id('a') },
    accepts: { ok: true, reason: '' },
    ...change,
  }
}

function place(deployment: WantedDeployment, machines: readonly MachineRecord[]): PlacementOutcome {
  return placeDeployment({ group: groupId('g1'), deployment, machines, taken: [] })
}

function layersOf(outcome: PlacementOutcome): readonly number[] {
  assert.equal(outcome.kind, 'placed', JSON.stringify(outcome))
  if (outcome.kind !== 'placed') return []
  return outcome.plan.stages.map(({ layers: [from, to] }) => to - from)
}

function reasonOf(outcome: PlacementOutcome): string {
  assert.equal(outcome.kind, 'refused', JSON.stringify(outcome))
  return outcome.kind === 'refused' ? outcome.reason : ''
}

describe('placeDeployment', () => {
  test('puts a model that fits on one machine', () => {
    const outcome = place(wish(), [record('a', 20), record('b', 64)])
    assert.deepEqual(layersOf(outcome), [60])
    assert.ok(outcome.kind === 'placed' && outcome.plan.strategy === 'single')
  })

  test('cuts a model that fits nowhere over the fewest machines, by their memory', () => {
    const outcome = place(wish(), [record('a', 24), record('b', 14), record('c', 8)])
    const layers = layersOf(outcome)
    assert.equal(layers.length, 2)
    assert.ok((layers[0] ?? 0) > (layers[1] ?? 0))
  })

  test('says of a model that fits nowhere what each machine lacks', () => {
    assert.match(reasonOf(place(wish(), [record('a', 8), record('b', 8)])), /a: needs .* GB/)
  })

  test('keeps the split and the order of machines that a person fixed', () => {
    const deployment = wish({
      strategy: 'pipeline',
      layers: [30, 20, 10],
      machines: [id('c'), id('a'), id('b')],
    })
    const outcome = place(deployment, [record('a', 64), record('b', 64), record('c', 64)])
    assert.deepEqual(layersOf(outcome), [30, 20, 10])
    if (outcome.kind !== 'placed') return
    assert.deepEqual(
      outcome.plan.stages.map((stage) => stage.ranks[0]?.machine),
      [id('c'), id('a'), id('b')],
    )
    assert.ok(isAsWished(outcome.plan, deployment))
    assert.ok(!isAsWished(outcome.plan, wish({ strategy: 'tensor' })))
  })

  test('refuses splits that cannot be, and says what would work', () => {
    const machines = [record('a', 64), record('b', 64), record('c', 64)]
    const refused = (change: Partial<WantedDeployment>): string =>
      reasonOf(place(wish(change), machines))
    assert.match(
      refused({ strategy: 'pipeline', layers: [30, 20] }),
      /add up to 50, and big has 60/,
    )
    assert.match(
      refused({ strategy: 'pipeline', layers: Array.from({ length: 61 }, () => 1) }),
      /61 stages are more than the 60 layers/,
    )
    assert.match(
      refused({ strategy: 'tensor', machines: [id('a'), id('b'), id('c')] }),
      /3 machines cannot share big: its 32 heads and 8 key-value heads can be shared by 2, 4, 8/,
    )
    assert.match(refused({ strategy: 'expert' }), /has no experts/)
    assert.match(refused({ strategy: 'tensor', layers: [30, 30] }), /for a pipeline only/)
  })

  test('shares a model among as many machines as its heads allow', () => {
    const machines = [record('a', 64), record('b', 64), record('c', 64)]
    const outcome = place(wish({ strategy: 'tensor' }), machines)
    assert.ok(outcome.kind === 'placed')
    assert.deepEqual(
      outcome.plan.stages.map((stage) => [stage.ranks.length, stage.backend, stage.worldStrategy]),
      [[2, 'ring', 'tensor']],
    )
  })

  test('gives the quicker machine more where the split may be uneven', () => {
    const uneven = { ...model, cut: { ...cut, tensor: 'uneven' as const, kvHeads: 3 } }
    const machines = [
      record('a', 64, { memoryBandwidth: 800e9 }),
      record('b', 64, { memoryBandwidth: 400e9 }),
    ]
    const outcome = place(wish({ strategy: 'tensor', model: uneven }), machines)
    assert.ok(outcome.kind === 'placed')
    const shares = outcome.plan.stages[0]?.ranks.map((rank) => rank.share) ?? []
    assert.equal((shares[0] ?? 0) / (shares[1] ?? 1), 2)
  })

  test('makes a stage of two machines and a stage of one out of three', () => {
    const machines = [record('a', 64), record('b', 64), record('c', 64)]
    const outcome = place(wish({ strategy: 'tensor-pipeline' }), machines)
    assert.deepEqual(layersOf(outcome), [40, 20])
    assert.ok(outcome.kind === 'placed')
    assert.deepEqual(
      outcome.plan.stages.map((stage) => stage.ranks.length),
      [2, 1],
    )
  })

  test('names the machines that must get the files first, and who has them', () => {
    const machines = [record('a', 20), record('b', 20, { models: [] })]
    const outcome = place(wish(), machines)
    assert.ok(outcome.kind === 'placed')
    assert.deepEqual(outcome.missing, [id('b')])
    assert.equal(outcome.source, id('a'))
    const nobody = machines.map((one) => ({ ...one, models: [] }))
    assert.match(reasonOf(place(wish(), nobody)), /does not have the files/)
  })

  test('serves with fewer machines when one of those named is gone', () => {
    const deployment = wish({ strategy: 'pipeline', machines: [id('a'), id('b'), id('c')] })
    assert.equal(layersOf(place(deployment, [record('a', 64), record('b', 64)])).length, 2)
  })

  test('never plans more for a machine than it has free, nor two ranks of a group for one', () => {
    const lend = fc.integer({ min: 1, max: 64 })
    const strategy = fc.constantFrom('auto', 'pipeline', 'tensor', 'tensor-pipeline' as const)
    fc.assert(
      fc.property(fc.array(lend, { minLength: 1, maxLength: 8 }), strategy, (sizes, asked) => {
        const machines = sizes.map((size, index) => record('abcdefgh'[index] ?? 'x', size))
        const outcome = place(wish({ strategy: asked as 'auto' }), machines)
        if (outcome.kind === 'refused') return
        const ranks = outcome.plan.stages.flatMap((stage) => stage.ranks)
        assert.equal(new Set(ranks.map((rank) => rank.machine)).size, ranks.length)
        for (const rank of ranks) {
          const found = machines.find((one) => one.id === rank.machine)
          assert.ok(rank.memoryBytes <= (found?.memoryLendBytes ?? 0))
        }
        assert.equal(outcome.plan.stages.at(-1)?.layers[1], model.layers)
      }),
    )
  })
})

test('apportion gives whole numbers that add up, none below one', () => {
  const weights = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), {
    minLength: 1,
    maxLength: 16,
  })
  fc.assert(
    fc.property(fc.integer({ min: 16, max: 200 }), weights, (total, parts) => {
      const counts = apportion(total, parts)
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        total,
      )
      assert.ok(counts.every((count) => count >= 1 && Number.isInteger(count)))
    }),
  )
})
