import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  a,
  b,
  deploymentOf,
  register,
  rosterOf,
  wishes,
} from '../../../test/support/machine-states.ts'
import { deploymentId } from '../ids.ts'
import {
  aliases,
  isDeploymentRemoved,
  isMachineRemoved,
  registerKeys,
  roster,
  wantedDeployments,
} from './desired.ts'

const tiny = deploymentId('tiny')

test('wantedDeployments() lists wishes with the version that wrote them, and no tombstones', () => {
  const registers = wishes(deploymentOf(), deploymentOf({ id: deploymentId('another') }))
  registers.set(registerKeys.deployment(deploymentId('gone')), register(undefined))
  assert.deepEqual(
    wantedDeployments(registers).map(({ id, version }) => [id, version.counter]),
    [
      ['another', 101],
      ['tiny', 100],
    ],
  )
})

test('isDeploymentRemoved() is true only for a tombstone: what is missing stops nothing', () => {
  assert.equal(isDeploymentRemoved(new Map(), tiny), false)
  assert.equal(isDeploymentRemoved(wishes(deploymentOf()), tiny), false)
  assert.equal(isDeploymentRemoved(new Map([['deployment/tiny', register(undefined)]]), tiny), true)
})

test('a wish of a newer version that cannot be understood is neither served nor taken for a removal', () => {
  const registers = new Map([
    ['deployment/tiny', register({ ...deploymentOf(), strategy: 'ring-of-fire' })],
  ])
  assert.deepEqual(wantedDeployments(registers), [])
  assert.equal(isDeploymentRemoved(registers, tiny), false)
})

test('wantedDeployments() and roster() take nothing that is not whole, and survive anything', () => {
  const fields = Object.keys(deploymentOf()) as (keyof ReturnType<typeof deploymentOf>)[]
  fc.assert(
    fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
      const spoilt = { ...deploymentOf(), [field]: value }
      const [wanted] = wantedDeployments(new Map([['deployment/tiny', register(spoilt)]]))
      if (wanted === undefined) return
      assert.equal(wanted.id, 'tiny')
      assert.ok(wanted.model.layers > 0 && Array.isArray(wanted.layers))
    }),
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(roster(new Map([[registerKeys.roster(a, 'x'), register(value)]])).size, 0)
    }),
  )
})

test('roster() admits nobody under the name of another: such an entry could never be withdrawn', () => {
  const [entry] = rosterOf(b).values()
  assert.equal(roster(new Map([[registerKeys.roster(a, 'x'), entry!]])).size, 0)
})

test('a machine is removed when every admission of it is withdrawn', () => {
  const registers = rosterOf(a, b)
  assert.equal(isMachineRemoved(registers, b), false)
  registers.set(registerKeys.roster(b, 'first'), register(undefined, 9))
  assert.equal(isMachineRemoved(registers, b), true)
  const again = new Map([
    ...registers,
    ...[...rosterOf(b)].map(([, value]) => [registerKeys.roster(b, 'second'), value] as const),
  ])
  assert.equal(isMachineRemoved(again, b), false)
  assert.equal(roster(again).has(b), true)
  assert.equal(isMachineRemoved(new Map(), b), false)
})

test('aliases() reads texts alone', () => {
  const registers = new Map([
    ['alias/small', register('tiny')],
    ['alias/odd', register(5)],
    ['alias/gone', register(undefined)],
  ])
  assert.deepEqual([...aliases(registers)], [['small', 'tiny']])
})
