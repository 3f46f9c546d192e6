import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterView, DeploymentView, MachineView } from '../../../src/wire/cluster-view.ts'
import { ageInWords, isOld } from './freshness.ts'
import { formatBytes, machineLine } from './machine-state.ts'
import { modelState, summaryOf } from './model-state.ts'

type Rank = DeploymentView['groups'][number]['stages'][number]['ranks'][number]

function deployment(
  status: DeploymentView['status'],
  ranks: readonly Partial<Rank>[] = [],
): DeploymentView {
  const full = ranks.map((rank, index) => ({
    rank: index,
    machine: 'a',
    machineId: 'a',
    pid: 1,
    layers: [0, 1] as [number, number],
    state: 'loading',
    phase: 'load',
    fraction: 0,
    memoryBytes: 0,
    activeBytes: 0,
    tokens: 0,
    ...rank,
  }))
  const group = {
    id: 'g',
    status: 'forming',
    strategy: 'single',
    why: null,
    predicted: null,
    sinceMs: 0,
    tokensPerSecond: 0,
    stages: [{ layers: [0, 1] as [number, number], backend: 'none', backendWhy: '', ranks: full }],
  }
  return {
    id: 'd',
    model: 'm',
    digest: '',
    strategy: 'auto',
    replicas: 1,
    status,
    detail: 'why',
    losses: [],
    groups: [group],
  }
}

function machine(fields: Partial<MachineView> = {}): MachineView {
  return {
    id: 'a',
    name: 'a',
    state: 'alive',
    role: null,
    version: null,
    platform: null,
    memoryLendBytes: 16e9,
    memoryReservedBytes: 4e9,
    models: [],
    refuses: null,
    heardAgoMs: 0,
    links: [],
    ...fields,
  }
}

function view(deployments: readonly DeploymentView[]): ClusterView {
  return {
    self: 'a',
    coordinator: 'a',
    epoch: 1,
    machines: [machine()],
    deployments: [...deployments],
    slow: [],
    ending: [],
  }
}

test('isOld() begins at thirty seconds', () => {
  assert.equal(isOld(29_999), false)
  assert.equal(isOld(30_000), true)
})

test('ageInWords() is calm at first and coarse at last', () => {
  const written = [0, 4999, 5000, 59_999, 60_000, 3_600_000, 200_000_000].map((ms) =>
    ageInWords(ms),
  )
  assert.deepEqual(written, [
    'just now',
    'just now',
    '5 s ago',
    '59 s ago',
    '1 min ago',
    '1 h ago',
    '2 days ago',
  ])
})

test('modelState() shows the progress of the slowest rank, rounded down', () => {
  const ranks = [{ fraction: 0.9 }, { fraction: 0.439 }, { state: 'ready', fraction: 0.1 }]
  const state = modelState(view([deployment('starting', ranks)]), 'm')
  assert.deepEqual(state, {
    tone: 'busy',
    words: 'loading weights 43 %',
    fraction: 0.439,
    isReady: false,
  })
})

test('modelState() shows no fraction where nothing is measured', () => {
  const state = modelState(
    view([deployment('starting', [{ phase: 'self-test', fraction: 0.5 }])]),
    'm',
  )
  assert.deepEqual([state.words, state.fraction], ['testing itself', null])
  const begun = modelState(view([deployment('starting', [{ fraction: 0 }])]), 'm')
  assert.deepEqual([begun.words, begun.fraction], ['loading weights', null])
  assert.equal(modelState(view([deployment('starting')]), 'm').words, 'starting')
  assert.equal(
    modelState(view([deployment('starting', [{ phase: 'new-phase' }])]), 'm').words,
    'new-phase',
  )
})

test('modelState() says why a model waits or has failed, and that others load when asked', () => {
  assert.equal(modelState(view([deployment('waiting')]), 'm').words, 'waiting: why')
  assert.equal(modelState(view([deployment('degraded')]), 'm').tone, 'bad')
  assert.equal(modelState(view([deployment('ready')]), 'm').isReady, true)
  assert.deepEqual(modelState(view([]), 'm'), {
    tone: 'idle',
    words: 'loads when asked',
    fraction: null,
    isReady: false,
  })
})

test('summaryOf() names the best that is there', () => {
  const words = (...statuses: DeploymentView['status'][]): string =>
    summaryOf(view(statuses.map((status) => deployment(status)))).words
  assert.equal(words('starting', 'ready'), 'Ready on 1 machine')
  assert.equal(words('degraded', 'starting'), 'A model is loading')
  assert.equal(words('degraded'), 'A model has failed')
  assert.equal(words(), 'No model loaded, 1 machine')
})

test('machineLine() adds the age of the view to the age of what it says', () => {
  const line = machineLine(machine({ heardAgoMs: 20_000 }), 15_000)
  assert.deepEqual([line.isOld, line.words], [true, 'last heard 35 s ago'])
  assert.equal(machineLine(machine({ heardAgoMs: 200 }), 2000).words, 'up')
})

test('machineLine() shows no memory of a machine that is gone or never told', () => {
  assert.equal(machineLine(machine({ state: 'dead' }), 0).reserved, null)
  assert.equal(machineLine(machine({ memoryLendBytes: null }), 0).reserved, null)
  assert.deepEqual(machineLine(machine(), 0).reserved, { bytes: 4e9, ofBytes: 16e9 })
})

test('formatBytes() is short', () => {
  assert.deepEqual([0, 538e6, 3.86e9, 18.96e9, 512e9].map(formatBytes), [
    '0 GB',
    '538 MB',
    '3.9 GB',
    '19 GB',
    '512 GB',
  ])
})
