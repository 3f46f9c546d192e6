import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Coordinator, holdingOf, orders } from '../../../test/support/coordinator.ts'
import { a, b, c, deploymentOf, planOf, recordOf } from '../../../test/support/machine-states.ts'
import { type GroupPlan, headMachine, placedRanks, planHash } from '../cluster/group-plan.ts'
import type { Failure, Holding, MachineRecord } from '../cluster/record.ts'
import type { Effect } from '../effects.ts'
import { limits } from '../limits.ts'
import { stopReasons } from './orders.ts'

test('a start asks every machine for the version it was planned for, also when one has changed since', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const head = headMachine(first.message.plan)
  const record = { ...recordOf(head, { version: '1.1.0' }), revision: 9 }
  coordinator.give({ kind: 'message', from: head, message: { kind: 'record', record } })
  const effects = coordinator.pass(1500, () => coordinator.beats())
  const { group } = first.message.plan
  const repeated = orders(effects, 'group-prepare').filter(
    ({ message }) => message.plan.group === group,
  )
  assert.deepEqual([...new Set(repeated.map(({ to }) => to))].sort(), [b, c])
  assert.deepEqual([...new Set(repeated.map(({ message }) => message.version))], ['1.0.0'])
})

test('what an earlier coordinator left reserved is given back, and nothing that may run by now', () => {
  const coordinator = new Coordinator([deploymentOf()])
  coordinator.settle()
  const holding: Holding = { ...holdingOf(planOf([b])), state: 'reserved' }
  const record = { ...recordOf(b), revision: 9, holdings: [holding] }
  const effects = [
    ...coordinator.give({ kind: 'message', from: b, message: { kind: 'record', record } }),
    ...coordinator.pass(2000, () => coordinator.beats()),
  ]
  const stops = orders(effects, 'group-stop').filter(({ message }) => message.group === 'g1')
  assert.ok(stops.length > 0)
  assert.ok(stops.every(({ message }) => message.reservedOnly === true))
})

test('a group that lost a rank while its coordinator stood still is not called late', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const { plan } = first.message
  for (const { machine, rank } of placedRanks(plan)) {
    const { group, formation } = plan
    const endpoints = [{ rank, endpoint: { host: '10.0.0.1', port: 1 + rank } }]
    coordinator.answer(machine, { kind: 'group-prepared', group, formation, endpoints })
  }
  const [head] = placedRanks(plan)
  assert.ok(head !== undefined)
  // By now the other rank has come and gone.
  coordinator.nowMs += limits.prepareMsMax + 1
  coordinator.beats()
  const holding = { ...holdingOf(plan), planHash: planHash(plan), rank: head.rank }
  const record = { ...recordOf(head.machine), revision: 9, holdings: [holding] }
  const stops = orders(
    coordinator.give({ kind: 'message', from: head.machine, message: { kind: 'record', record } }),
    'group-stop',
  ).filter(({ message }) => message.group === plan.group)
  assert.deepEqual([...new Set(stops.map(({ message }) => message.reason))], [stopReasons.rankLost])
})

test('what still runs of a group that could not be put together again is stopped before that is tried once more', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  coordinator.settle()
  const [start] = [...coordinator.state.starts.values()]
  assert.ok(start !== undefined)
  const { plan } = start
  const { group, deployment } = plan
  const atMs = coordinator.nowMs
  const failed: Failure = {
    deployment,
    wish: 5,
    group,
    formation: 1,
    rank: 0,
    cause: 'crash',
    excused: false,
    atMs,
  }
  const [head] = placedRanks(plan)
  assert.ok(head !== undefined)
  const other = head.machine === b ? c : b
  const tell = (from: typeof b, change: Partial<MachineRecord>, revision: number): void => {
    const record = { ...recordOf(from), revision, ...change }
    coordinator.give({ kind: 'message', from, message: { kind: 'record', record } })
  }
  // It was whole once; of its two ranks one is left, and putting it together again has failed before.
  const left = { ...holdingOf(plan), planHash: planHash(plan), rank: head.rank }
  tell(other, { failures: [failed] }, 9)
  tell(head.machine, { holdings: [left] }, 9)
  const stopsOf = (effects: readonly Effect[]): readonly (boolean | undefined)[] =>
    orders(effects, 'group-stop')
      .filter(({ message }) => message.group === plan.group)
      .map(({ message }) => message.reservedOnly)
  let given: readonly (boolean | undefined)[] = []
  for (let turn = 0; turn < 40 && given.length === 0; turn++)
    given = stopsOf(coordinator.pass(250, () => coordinator.beats()))
  assert.deepEqual([...new Set(given)], [true])
  const next = stopsOf(coordinator.pass(750, () => coordinator.beats()))
  assert.ok(next.includes(undefined), 'before it could be put together once more')
})

test('a machine that refuses everything is asked less and less often', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const prepares: GroupPlan[] = []
  const refuse = (effects: readonly Effect[]): void => {
    for (const { to, message } of orders(effects, 'group-prepare')) {
      if (to !== b) continue
      prepares.push(message.plan)
      const { group, formation } = message.plan
      const epochSeen = { counter: 1, machine: a }
      const refusal = { group, formation, reason: 'every port is taken', epochSeen }
      refuse(coordinator.answer(b, { kind: 'group-refused', ...refusal }))
    }
  }
  refuse(coordinator.settle())
  for (let turn = 0; turn < 120; turn++) refuse(coordinator.pass(250, () => coordinator.beats()))
  assert.ok(prepares.length >= 4 && prepares.length <= 8, `asked ${prepares.length} times in 30 s`)
})

test('a group that lost a rank is put together again, unless that has failed before', () => {
  const plan = planOf([b, c])
  const { group, deployment } = plan
  const left = { ...holdingOf(plan), planHash: planHash(plan) }
  const failed = { deployment, wish: 100, group, rank: 1, cause: 'nobody came', excused: false }
  const reformsAfter = (failures: readonly Omit<Failure, 'atMs'>[]): boolean => {
    const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [12, 12] })])
    coordinator.settle(500)
    const tell = (from: typeof b, change: Partial<MachineRecord>): readonly Effect[] => {
      const record = { ...recordOf(from), revision: 9, ...change }
      return coordinator.give({ kind: 'message', from, message: { kind: 'record', record } })
    }
    tell(b, { holdings: [left] })
    tell(c, { failures: failures.map((one) => ({ ...one, atMs: coordinator.nowMs })) })
    const prepares = orders(
      coordinator.pass(4000, () => coordinator.beats()),
      'group-prepare',
    )
    return prepares.some(({ message }) => message.plan.group === group)
  }
  assert.equal(reformsAfter([]), true)
  assert.equal(reformsAfter([{ ...failed, formation: 0 }]), true)
  assert.equal(reformsAfter([{ ...failed, formation: 1 }]), false)
})
