import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploymentOf } from '../../../test/support/machine-states.ts'
import { type Advice, follows } from '../cluster/advice.ts'
import type { WantedDeployment } from '../cluster/desired.ts'
import { isDeployment } from '../cluster/desired-shapes.ts'
import { type GroupPlan, type ModelRef, freelyCut, machinesOf } from '../cluster/group-plan.ts'
import type { MachineRecord } from '../cluster/record.ts'
import { deploymentId, groupId, machineId, modelDigest } from '../ids.ts'
import { placeDeployment } from './placement.ts'

const id = (name: string): ReturnType<typeof machineId> => machineId(name.repeat(64).slice(0, 64))
const model: ModelRef = {
  name: 'big',
  digest: modelDigest('d'.repeat(64)),
  architecture: 'llama',
  layers: 30,
  weightsBytes: 10e9,
  parameters: 20e9,
  kvBytesPerToken: 100_000,
  contextTokens: 8192,
  defaults: {},
  cut: { ...freelyCut, tensor: 'even' },
}
const range = { value: 20, low: 15, high: 25 }
const pipelineAdvice: Extract<Advice, { kind: 'planned' }> = {
  kind: 'planned',
  strategy: 'pipeline',
  stages: [
    { layers: 20, machines: [id('b')], sharing: 'alone' },
    { layers: 10, machines: [id('a')], sharing: 'alone' },
  ],
  backend: 'ring',
  why: 'best for this goal: 20.0 tok/s on 2 machines',
  kbFindings: [1040],
  predicted: { tokensPerSecond: range, firstTokenSeconds: range, restsOn: 'chip table' },
}

function wish(change: Partial<WantedDeployment> = {}): WantedDeployment {
  const version = { counter: 1, machine: id('a'), boot: 'b' }
  const big = deploymentOf({ id: deploymentId('big'), model, contextTokens: 8192 })
  return { ...big, version, ...change }
}

function record(name: string, lendGb: number): MachineRecord {
  return {
    id: id(name),
    name,
    role: 'always',
    boot: 'b',
    incarnation: 1,
    revision: 1,
    version: '1',
    platform: 'darwin',
    computesIn: 'stored',
    memoryLendBytes: lendGb * 1e9,
    models: [model],
    holdings: [],
    failures: [],
    epochSeen: { counter: 0, machine: id(name) },
    accepts: { ok: true, reason: '' },
  }
}

function place(
  deployment: WantedDeployment,
  machines: readonly MachineRecord[],
  change: { taken?: readonly ReturnType<typeof machineId>[] } = {},
): GroupPlan {
  const outcome = placeDeployment({
    group: groupId('g'),
    deployment,
    machines,
    taken: change.taken ?? [],
  })
  assert.ok(outcome.kind === 'placed')
  return outcome.plan
}

const outline = (plan: GroupPlan): string =>
  plan.stages
    .map(
      ({ layers, ranks }) =>
        `${ranks.map((rank) => rank.machine[0]).join('+')}:${layers[0]}–${layers[1]}`,
    )
    .join(' ')

const roomy = [record('a', 64), record('b', 64), record('c', 64)]

test('placeDeployment() follows the planner for "auto", machine by machine and layer by layer', () => {
  const plan = place(wish({ advice: pipelineAdvice }), roomy)
  assert.equal(plan.strategy, 'pipeline')
  assert.equal(outline(plan), 'b:0–20 a:20–30')
  assert.ok(follows(plan, pipelineAdvice))
  const { why, kbFindings, predicted } = pipelineAdvice
  assert.deepEqual(plan.reason, { why, kbFindings, predicted })
})

test('placeDeployment() makes an advised world with the backend and the devices of the advice', () => {
  const devices = [
    [null, 'rdma_en2'],
    ['rdma_en3', null],
  ]
  const advice: Advice = {
    ...pipelineAdvice,
    strategy: 'tensor',
    stages: [{ layers: 30, machines: [id('c'), id('a')], sharing: 'tensor' }],
    backend: 'jaccl',
    devices,
  }
  const [stage] = place(wish({ advice }), roomy).stages
  assert.equal(stage?.backend, 'jaccl')
  assert.deepEqual(stage?.devices, devices)
  assert.deepEqual(
    stage?.ranks.map((rank) => rank.machine),
    [id('c'), id('a')],
  )
})

test('placeDeployment() goes by free memory, and says so, when the advice cannot be followed', () => {
  const cases: readonly (readonly [Advice | undefined, readonly MachineRecord[], RegExp])[] = [
    [pipelineAdvice, [record('a', 64)], /a machine of it is not there/],
    [pipelineAdvice, [record('a', 64), record('b', 3)], /has no room there/],
    [{ kind: 'unknown', why: 'run "bushel probe"' }, roomy, /could not tell: run "bushel probe"/],
    [undefined, roomy, /the planner was not asked/],
    [
      {
        ...pipelineAdvice,
        strategy: 'tensor',
        stages: [{ layers: 30, machines: [id('a'), id('b'), id('c')], sharing: 'tensor' }],
      },
      roomy,
      /by free memory/,
    ],
    [{ ...pipelineAdvice, stages: pipelineAdvice.stages.slice(0, 1) }, roomy, /by free memory/],
  ]
  for (const [advice, machines, reason] of cases) {
    const wished = wish(advice === undefined ? {} : { advice })
    const plan = place(wished, machines)
    assert.equal(plan.strategy, 'single')
    assert.match(plan.reason?.why ?? '', reason)
    assert.equal(plan.reason?.predicted, null)
  }
})

test('placeDeployment() puts a replica elsewhere, and keeps to what a person fixed', () => {
  const replica = place(wish({ advice: pipelineAdvice }), roomy, { taken: [id('a'), id('b')] })
  assert.deepEqual(machinesOf(replica), [id('c')])
  const fixed = wish({ strategy: 'single', advice: pipelineAdvice })
  const plan = place(fixed, roomy)
  assert.equal(plan.strategy, 'single')
  assert.equal(plan.reason, undefined)
})

test('isDeployment() takes advice as it is written and refuses what is none', () => {
  const { version: _version, ...written } = wish({ advice: pipelineAdvice })
  const copy = JSON.parse(JSON.stringify(written)) as Record<string, unknown>
  assert.ok(isDeployment('deployment/big', copy))
  for (const advice of [7, {}, { kind: 'planned', why: '' }, { ...pipelineAdvice, stages: [1] }])
    assert.ok(!isDeployment('deployment/big', { ...copy, advice }), JSON.stringify(advice))
})
