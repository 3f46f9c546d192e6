// What of a ranking becomes advice for the next group.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from '../../../test/planner-requests.ts'
import { placeModel } from '../../core/plan/place-model.ts'
import type { RankedPlan } from '../../core/plan/types.ts'
import { adviceFrom, chooseFor } from './advise.ts'

function plansFor(cluster: string, replicas: boolean): readonly RankedPlan[] {
  const asked = request('llama-3.3-70b', cluster)
  const outcome = placeModel({ ...asked, abilities: { ...asked.abilities, replicas } })
  assert.ok(outcome.kind === 'planned')
  return outcome.plans
}
const nobody = { facts: [], idOf: new Map() }

test('chooseFor() leaves room for the replicas that are still to come', () => {
  const plans = plansFor('4xM4Max-64,10gbe', true)
  const alone = chooseFor(plans, 1)
  const pair = chooseFor(plans, 2)
  assert.equal(alone?.placement.groups.length, 1)
  assert.ok(pair !== null && pair.placement.groups.length >= 2)
  const used = pair.placement.groups[0]?.stages.flatMap(({ ranks }) => ranks) ?? []
  assert.ok(used.length <= 2, 'half of four machines are left for the other group')
  const advice = adviceFrom(pair, nobody)
  assert.ok(advice.kind === 'planned')
  assert.equal(advice.strategy, used.length === 1 ? 'single' : 'pipeline')
  assert.equal(
    advice.stages.reduce((sum, { layers }) => sum + layers, 0),
    80,
  )
})

test('chooseFor() takes the best for one group where not all of them fit', () => {
  const plans = plansFor('2xM4Pro-64,10gbe', true)
  assert.equal(chooseFor(plans, 3)?.placement.groups.length, 1)
  assert.equal(chooseFor([], 1), null)
})
