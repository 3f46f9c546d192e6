import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  c,
  deploymentOf,
  planOf,
  recordOf,
  register,
  rosterOf,
  selfOf,
  tinyModel,
  wishes,
} from '../../../test/support/machine-states.ts'
import { wantedDeployments } from '../cluster/desired.ts'
import type { Holding } from '../cluster/record.ts'
import { deploymentId, groupId } from '../ids.ts'
import { deploymentIdFor, lookUpModel, servedModels } from './catalogue.ts'
import { chooseRoute, readyGroups } from './routing.ts'
import { conditionOf } from './waiting.ts'

const tiny = deploymentId('tiny')

/** A gateway on a that sees one rank on b and one on c. */
function gateway(states: readonly Holding['state'][], change: Partial<Holding> = {}): HandDriven {
  const machine = new HandDriven(
    selfOf(a, { models: [] }),
    new Map([...rosterOf(a, b, c), ...wishes(deploymentOf())]),
  )
  for (const [index, id] of [b, c].entries()) {
    const state = states[index]
    machine.hear(id)
    const holding: Holding | null =
      state === undefined
        ? null
        : {
            plan: planOf([id], { group: groupId(`g-${id.slice(0, 1)}`) }),
            planHash: '',
            rank: 0,
            epoch: { counter: 1, machine: a },
            state,
            sinceMs: 0,
            pid: 1,
            endpoint: null,
            phase: 'load',
            fraction: 0.4,
            tokens: 0,
            contextTokens: 0,
            activeBytes: 0,
            tokensPerSecond: 0,
            ...change,
          }
    const record = { ...recordOf(id, { models: [] }), holdings: holding === null ? [] : [holding] }
    machine.give({ kind: 'message', from: id, message: { kind: 'record', record } })
  }
  return machine
}

const [gb, gc] = [groupId('g-b'), groupId('g-c')]

test('readyGroups() offers only groups that are ready, on machines that are alive', () => {
  assert.deepEqual(
    readyGroups(gateway(['ready', 'loading']).state, tiny).map(({ group }) => group),
    [gb],
  )
  const machine = gateway(['ready', 'ready'])
  machine.pass(2000, () => machine.hear(c))
  // b is suspected by now: nothing new is given to it.
  assert.deepEqual(
    readyGroups(machine.state, tiny).map(({ group }) => group),
    [gc],
  )
  assert.deepEqual(readyGroups(machine.state, deploymentId('other')), [])
})

test('chooseRoute() takes the least busy group, and none that is to be avoided', () => {
  const groups = readyGroups(gateway(['ready', 'ready']).state, tiny)
  const load = new Map([[gb, 3]])
  const none = { avoid: [], familiar: null }
  assert.equal(chooseRoute(groups, { ...none, load })?.group, gc)
  assert.equal(chooseRoute(groups, { ...none, load })?.machine, c)
  assert.equal(chooseRoute(groups, { ...none, load, avoid: [gc] })?.group, gb)
  assert.equal(chooseRoute(groups, { ...none, load, avoid: [gb, gc] }), null)
  assert.equal(chooseRoute([], { ...none, load }), null)
})

test('chooseRoute() prefers a group that knows the prompt, unless it is much busier', () => {
  const groups = readyGroups(gateway(['ready', 'ready']).state, tiny)
  const busy = (count: number): Map<typeof gb, number> => new Map([[gb, count]])
  assert.equal(chooseRoute(groups, { load: busy(1), avoid: [], familiar: gb })?.group, gb)
  assert.equal(chooseRoute(groups, { load: busy(3), avoid: [], familiar: gb })?.group, gc)
})

function condition(machine: HandDriven): ReturnType<typeof conditionOf> {
  const [deployment] = wantedDeployments(machine.state.registers)
  assert.ok(deployment !== undefined)
  return conditionOf(machine.state, deployment, machine.nowMs)
}

test('conditionOf() says what a deployment waits for, in words', () => {
  assert.equal(condition(gateway(['ready'])).status, 'ready')
  assert.deepEqual(condition(gateway(['loading'])).detail, 'load 40%')
  const none = condition(gateway([]))
  assert.equal(none.status, 'waiting')
  assert.match(none.detail, /does not have the files of tiny/)
})

test('conditionOf() says why it gave up', () => {
  const machine = gateway([])
  const failures = Array.from({ length: 5 }, (_, index) => ({
    deployment: tiny,
    wish: 100,
    group: groupId(`g${index}`),
    rank: 0,
    cause: 'out of memory',
    excused: false,
    atMs: machine.nowMs,
  }))
  machine.state = { ...machine.state, failures }
  const { status, detail } = condition(machine)
  assert.equal(status, 'degraded')
  assert.match(detail, /failed 5 times, last because out of memory; load it again/)
})

test('lookUpModel() finds by name, alias and last part, and names what there is', () => {
  const model = { ...tinyModel, name: 'maker/Tiny-1B' }
  const registers = new Map([...rosterOf(a), ['alias/small', register('maker/Tiny-1B')] as const])
  const { state } = new HandDriven(selfOf(a, { models: [model] }), registers)
  for (const name of ['maker/Tiny-1B', 'MAKER/tiny-1b', 'tiny-1b', 'small']) {
    const found = lookUpModel(state, name)
    assert.equal(found.kind === 'found' ? found.served.model.name : name, 'maker/Tiny-1B')
  }
  const unknown = lookUpModel(state, '../../etc/passwd')
  assert.deepEqual(unknown.kind === 'unknown' ? unknown.known : null, ['maker/Tiny-1B'])
})

test('servedModels() lists this machine first, then wishes, then what others have, each once', () => {
  const machine = new HandDriven(
    selfOf(a, { models: [{ ...tinyModel, name: 'own' }, tinyModel] }),
    new Map([
      ...rosterOf(a, b),
      ...wishes(deploymentOf({ id: deploymentId('w'), model: { ...tinyModel, name: 'wanted' } })),
    ]),
  )
  machine.meet(b, { models: [tinyModel, { ...tinyModel, name: 'theirs' }] })
  assert.deepEqual(
    servedModels(machine.state).map(({ model, deployment }) => [model.name, deployment !== null]),
    [
      ['own', false],
      ['tiny', false],
      ['wanted', true],
      ['theirs', false],
    ],
  )
})

test('deploymentIdFor() makes an id of any name', () => {
  assert.equal(deploymentIdFor('Maker/Model 3B'), 'maker-model-3b')
  assert.equal(deploymentIdFor('???'), 'model')
  assert.equal(deploymentIdFor('x'.repeat(500)).length, 120)
})
