import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Coordinator, holdingOf, orders } from '../../../test/support/coordinator.ts'
import { b, c, deploymentOf, recordOf } from '../../../test/support/machine-states.ts'
import type { Holding } from '../cluster/record.ts'
import type { Effect } from '../effects.ts'

test('while a pipeline that lost a stage is put together again, no other group takes its place', () => {
  const coordinator = new Coordinator([deploymentOf({ strategy: 'pipeline', layers: [14, 10] })])
  const [first] = orders(coordinator.settle(), 'group-prepare')
  assert.ok(first !== undefined)
  const { plan } = first.message
  const places = plan.stages.flatMap(({ ranks }) => ranks.map(({ machine }) => machine))
  for (const [rank, machine] of places.entries()) {
    const endpoints = [{ rank, endpoint: { host: '10.0.0.1', port: 1 + rank } }]
    const { group, formation } = plan
    coordinator.answer(machine, { kind: 'group-prepared', group, formation, endpoints })
  }
  let revision = 20
  const tells = (machine: typeof b, state: Holding['state'] | null): readonly Effect[] => {
    const rank = places.indexOf(machine)
    const holdings = state === null ? [] : [{ ...holdingOf(plan), rank, state }]
    const record = { ...recordOf(machine), revision: revision++, holdings }
    return coordinator.answer(machine, { kind: 'record', record } as never)
  }
  const [head = b, tail = c] = places
  tells(head, 'ready')
  tells(tail, 'ready')
  coordinator.pass(1000, () => coordinator.beats())
  // The head says that its neighbour is gone before the neighbour's machine does.
  const heard = [...tells(head, 'orphaned'), ...coordinator.pass(500, () => coordinator.beats())]
  assert.deepEqual(orders(heard, 'group-prepare'), [])
  const known = [...tells(tail, null), ...coordinator.pass(500, () => coordinator.beats())]
  const prepares = orders(known, 'group-prepare')
  assert.ok(prepares.length > 0)
  for (const { message } of prepares) {
    assert.equal(message.plan.group, plan.group)
    assert.equal(message.plan.formation, plan.formation + 1)
  }
  assert.deepEqual(orders(known, 'group-stop'), [])
})
