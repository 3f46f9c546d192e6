import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterView } from '../../../src/wire/cluster-view.ts'
import { RequestFailed } from '../api/failure.ts'
import { ClusterStore } from './cluster-store.ts'

const view: ClusterView = {
  self: 'a',
  coordinator: null,
  epoch: 1,
  machines: [],
  deployments: [],
  ending: [],
  slow: [],
}
const starting = {
  id: 'd',
  model: 'm',
  digest: '',
  strategy: 'auto',
  replicas: 1,
  status: 'starting' as const,
  detail: '',
  losses: [],
  groups: [],
}

function setUp() {
  const timers: { run: () => void; afterMs: number }[] = []
  const server = {
    clusterView: (): Promise<ClusterView> => Promise.resolve(view),
    models: () => Promise.resolve([{ id: 'm', loaded: true, contextTokens: null }]),
  }
  let nowMs = 1000
  const store = new ClusterStore({
    api: { clusterView: () => server.clusterView(), models: () => server.models() },
    wallMs: () => nowMs,
    setTimer: (run, afterMs) => {
      const timer = { run, afterMs }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer), 1)
    },
  })
  const advance = (ms: number): void => void (nowMs += ms)
  return { store, server, timers, advance }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('ClusterStore dates a view by when it was asked for, so that it is never shown as younger', async () => {
  const { store, server, advance } = setUp()
  const slow = Promise.withResolvers<ClusterView>()
  server.clusterView = () => slow.promise
  store.start()
  advance(700)
  slow.resolve(view)
  await settle()
  assert.equal(store.getState().viewAtMs, 1000)
})

test('ClusterStore keeps the last view and its date when the server falls silent', async () => {
  const { store, server, advance } = setUp()
  store.start()
  await settle()
  server.clusterView = () => Promise.reject(new RequestFailed({ kind: 'unreachable' }))
  advance(9000)
  store.askNow()
  await settle()
  const { view: kept, viewAtMs, viewFailure, models } = store.getState()
  assert.equal(kept, view)
  assert.equal(viewAtMs, 1000)
  assert.deepEqual(viewFailure, { kind: 'unreachable' })
  assert.equal(models?.length, 1)
})

test('ClusterStore asks often while a model comes up, seldom when refused', async () => {
  const { store, server, timers } = setUp()
  store.start()
  await settle()
  const calmMs = timers.at(-1)?.afterMs ?? 0
  server.clusterView = () => Promise.resolve({ ...view, deployments: [starting] })
  store.askNow()
  await settle()
  assert((timers.at(-1)?.afterMs ?? calmMs) < calmMs)
  const refusal = {
    kind: 'refused',
    status: 403,
    code: null,
    message: '',
    retryAfterSeconds: null,
  } as const
  server.clusterView = () => Promise.reject(new RequestFailed(refusal))
  store.askNow()
  await settle()
  assert((timers.at(-1)?.afterMs ?? 0) > calmMs)
})

test('ClusterStore has one timer at most, and none while paused', async () => {
  const { store, timers } = setUp()
  store.start()
  await settle()
  store.askNow()
  store.askNow()
  await settle()
  assert.equal(timers.length, 1)
  store.pause()
  assert.equal(timers.length, 0)
  store.askNow()
  await settle()
  assert.equal(timers.length, 0)
})

test('ClusterStore.isModelReady() says null when it cannot know', async () => {
  const { store, server } = setUp()
  assert.equal(store.isModelReady('m'), null)
  server.clusterView = () =>
    Promise.resolve({ ...view, deployments: [{ ...starting, status: 'ready' }] })
  store.start()
  await settle()
  assert.equal(store.isModelReady('m'), true)
  assert.equal(store.isModelReady('other'), false)
})
