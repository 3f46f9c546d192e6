import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  HandDriven,
  a,
  b,
  c,
  deploymentOf,
  recordOf,
  rosterOf,
  selfOf,
  sentTo,
  wishes,
} from '../../../test/support/machine-states.ts'
import { Coordinator, holdingOf, orders } from '../../../test/support/coordinator.ts'
import { registerKeys } from '../cluster/desired.ts'
import type { Failure } from '../cluster/record.ts'
import { groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import { readinessOf } from './backoff.ts'

test('a coordinator begins with an epoch above every other, on disk before its first order', () => {
  const coordinator = new Coordinator([deploymentOf()])
  coordinator.meet(b)
  coordinator.hear(c, { epoch: { counter: 7, machine: c }, role: 'sometimes' })
  const effects = coordinator.pass(3000, () => {
    coordinator.hear(b)
    coordinator.hear(c, { epoch: { counter: 7, machine: c }, role: 'sometimes' })
  })
  const [first] = orders(effects, 'group-prepare')
  assert.deepEqual(first?.message.epoch, { counter: 8, machine: a })
  const journal = effects.findIndex((effect) => effect.kind === 'journal-write')
  const order = effects.findIndex(
    (effect) => effect.kind === 'message-send' && effect.message.kind === 'group-prepare',
  )
  assert.ok(journal !== -1 && journal < order)
})

test('a group is committed only when every machine has prepared', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const prepares = orders(coordinator.settle(), 'group-prepare')
  assert.deepEqual([...new Set(prepares.map(({ to }) => to))].sort(), [b, c])
  const [first] = prepares
  assert.ok(first !== undefined)
  const { group, formation } = first.message.plan
  const endpoints = (
    rank: number,
  ): { rank: number; endpoint: { host: string; port: number } }[] => [
    { rank, endpoint: { host: '10.0.0.1', port: 1 + rank } },
  ]
  const rankOf = (machine: string): number =>
    first.message.plan.stages.findIndex(({ ranks }) => ranks[0]?.machine === machine)
  const one = coordinator.answer(b, {
    kind: 'group-prepared',
    group,
    formation,
    endpoints: endpoints(rankOf(b)),
  })
  assert.deepEqual(orders(one, 'group-commit'), [])
  const two = coordinator.answer(c, {
    kind: 'group-prepared',
    group,
    formation,
    endpoints: endpoints(rankOf(c)),
  })
  const commits = orders(two, 'group-commit')
  assert.deepEqual(commits.map(({ to }) => to).sort(), [b, c])
  assert.deepEqual(
    commits[0]?.message.endpoints.map((endpoint) => endpoint?.port),
    [1, 2],
  )
  assert.ok((commits[0]?.message.secret.length ?? 0) > 32)
})

test('one refusal takes the whole start back, and the next one waits a moment', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const { group, formation } = first.message.plan
  const epochSeen = { counter: 1, machine: a }
  const effects = coordinator.answer(b, {
    kind: 'group-refused',
    group,
    formation,
    reason: 'no',
    epochSeen,
  })
  assert.deepEqual(
    orders(effects, 'group-stop').map(({ to, message }) => [to, message.reservedOnly]),
    [[c, true]],
  )
  assert.equal(coordinator.state.starts.size, 0)
  assert.deepEqual(
    orders(
      coordinator.pass(500, () => coordinator.beats()),
      'group-prepare',
    ),
    [],
  )
  const again = orders(
    coordinator.pass(2000, () => coordinator.beats()),
    'group-prepare',
  )
  assert.ok(again.length > 0)
  assert.notEqual(again[0]?.message.plan.group, group)
})

test('a start that nobody answers is repeated, then given up', () => {
  const coordinator = new Coordinator([deploymentOf()])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  const effects = coordinator.pass(limits.prepareMsMax + 1000, () => coordinator.beats())
  const repeated = orders(effects, 'group-prepare').filter(
    ({ message }) => message.plan.group === first?.message.plan.group,
  )
  assert.ok(repeated.length >= 3 && repeated.length <= 7, `${repeated.length} repetitions`)
  assert.ok(
    orders(effects, 'group-stop').some(
      ({ message }) => message.group === first?.message.plan.group,
    ),
  )
})

test('answers about another start, or of machines that were not asked, count for nothing', () => {
  const coordinator = new Coordinator([deploymentOf()])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const { group, formation } = first.message.plan
  const other = first.to === b ? c : b
  coordinator.answer(other, { kind: 'group-prepared', group, formation, endpoints: [] })
  coordinator.answer(b, {
    kind: 'group-prepared',
    group: groupId('nobody'),
    formation,
    endpoints: [],
  })
  coordinator.answer(b, { kind: 'group-prepared', group, formation: 9, endpoints: [] })
  assert.equal(coordinator.state.starts.get(group)?.prepared.size, 0)
})

test('replicas go to different machines', () => {
  const coordinator = new Coordinator([deploymentOf({ replicas: 2 })])
  const machines = orders(coordinator.settle(), 'group-prepare').map(({ to }) => to)
  assert.deepEqual([...new Set(machines)].sort(), [b, c])
  const plans = new Set(
    orders(coordinator.effects, 'group-prepare').map(({ message }) => message.plan.group),
  )
  assert.ok(plans.size <= 2)
})

test('machines that cannot hold it are asked for nothing', () => {
  for (const change of [{ memoryLendBytes: 1e6 }, { models: [] }, { role: 'client' as const }]) {
    const coordinator = new Coordinator([deploymentOf()], change)
    assert.deepEqual(orders(coordinator.settle(), 'group-prepare'), [])
  }
})

test('a group of a deployment that is not known here is left alone; one that was unloaded is stopped', () => {
  const known = new Coordinator([deploymentOf()])
  const [first] = orders(known.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const { plan } = first.message
  const record = { ...recordOf(b), revision: 9, holdings: [holdingOf(plan)] }
  const other = new Coordinator([])
  other.settle()
  other.give({ kind: 'message', from: b, message: { kind: 'record', record } })
  assert.deepEqual(
    orders(
      other.pass(3000, () => other.beats()),
      'group-stop',
    ),
    [],
  )
  other.give({
    kind: 'registers-write',
    writes: [{ key: registerKeys.deployment(plan.deployment), value: undefined }],
  })
  const stops = orders([...other.effects, ...other.pass(500, () => other.beats())], 'group-stop')
  assert.ok(stops.length > 0)
  assert.match(stops[0]?.message.reason ?? '', /unloaded/)
})

test('who does not lead gives no orders', () => {
  const follower = new HandDriven(
    selfOf(b),
    new Map([...rosterOf(a, b), ...wishes(deploymentOf())]),
  )
  follower.meet(a)
  const effects = follower.pass(5000, () => follower.hear(a, { epoch: { counter: 1, machine: a } }))
  assert.deepEqual(
    sentTo(effects, a).filter((kind) => kind.startsWith('group-')),
    [],
  )
  assert.equal(follower.state.term, null)
})

const wanted = { ...deploymentOf(), version: { counter: 5, machine: a, boot: 'b' } }

function failureAt(atMs: number, change: Partial<Failure> = {}): Failure {
  const { id: deployment } = wanted
  const group = groupId(`g${atMs}`)
  return { deployment, wish: 5, group, rank: 0, cause: 'crash', excused: false, atMs, ...change }
}

test('readinessOf() waits longer after each failure without work, and in the end gives up', () => {
  assert.equal(readinessOf(wanted, [], 0).kind, 'start-now')
  const waits: number[] = []
  for (let count = 1; count < limits.restartsMax; count++) {
    const failures = Array.from({ length: count }, (_, index) => failureAt(index))
    const readiness = readinessOf(wanted, failures, 0)
    assert.ok(readiness.kind === 'start-later')
    waits.push(readiness.atMs - (count - 1))
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000])
  const all = Array.from({ length: limits.restartsMax }, (_, index) => failureAt(index))
  assert.equal(readinessOf(wanted, all, 1e9).kind, 'degraded')
})

test('readinessOf() does not count what had worked, what served an older wish, or a group twice', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1000), { maxLength: 20 }), (times) => {
      const excused = times.map((atMs) => failureAt(atMs, { excused: true }))
      const older = times.map((atMs) => failureAt(atMs, { wish: 4 }))
      assert.equal(readinessOf(wanted, [...excused, ...older], 0).kind, 'start-now')
      const ranks = times.map((atMs, rank) => failureAt(atMs, { group: groupId('g'), rank }))
      const readiness = readinessOf(wanted, ranks, 0)
      assert.ok(
        readiness.kind === 'start-now' ||
          (readiness.kind === 'start-later' && readiness.failures === 1),
      )
    }),
  )
})
