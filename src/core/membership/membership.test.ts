import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { HandDriven, a, b, c, rosterOf, selfOf } from '../../../test/support/machine-states.ts'
import type { Role } from '../cluster/record.ts'
import { limits } from '../limits.ts'
import { component, coordinatorOf, hearEachOther, reachable, settledCoordinator } from './view.ts'

function fresh(): HandDriven {
  return new HandDriven(selfOf(a), rosterOf(a, b, c))
}

function statusOf(machine: HandDriven, id = b): string | undefined {
  return machine.state.peers.get(id)?.status
}

test('a silent machine is suspected after 1.5 s and dead after 3 s', () => {
  const machine = fresh()
  machine.hear(b)
  machine.pass(1250)
  assert.equal(statusOf(machine), 'alive')
  machine.pass(500)
  assert.equal(statusOf(machine), 'suspect')
  machine.pass(1500)
  assert.equal(statusOf(machine), 'dead')
  machine.hear(b)
  assert.equal(statusOf(machine), 'alive')
})

test('a machine whose last link was reset is dead at once, unless it dials again', () => {
  const lost = { kind: 'link-lost', peer: b, link: 'ethernet' } as const
  const gone = fresh()
  gone.hear(b)
  gone.give(lost)
  gone.pass(limits.resetGraceMs + 250)
  assert.equal(statusOf(gone), 'dead')
  const back = fresh()
  back.hear(b)
  back.give(lost)
  back.hear(b)
  back.pass(limits.resetGraceMs + 250)
  assert.equal(statusOf(back), 'alive')
})

test('a lost link is no lost machine while another one beats', () => {
  const machine = fresh()
  machine.hear(b)
  const beat = machine.state.peers.get(b)
  assert.ok(beat !== undefined)
  machine.give({
    kind: 'heartbeat',
    from: b,
    link: 'thunderbolt',
    beat: { ...beat, revision: 1, epoch: beat.epoch },
  })
  machine.give({ kind: 'link-lost', peer: b, link: 'thunderbolt' })
  machine.pass(750)
  assert.equal(statusOf(machine), 'alive')
})

test('nobody is judged by time in which we ourselves stood still', () => {
  const machine = fresh()
  machine.hear(b)
  machine.nowMs += 20_000
  machine.give({ kind: 'tick', lagMs: 19_750, progress: [] })
  assert.equal(statusOf(machine), 'alive')
  machine.pass(4000)
  assert.equal(statusOf(machine), 'dead')
})

test('a clock that is an hour off changes nothing: ages travel, times do not', () => {
  const early = new HandDriven(selfOf(a), rosterOf(a, b, c), 1000)
  const late = new HandDriven(selfOf(a), rosterOf(a, b, c), 3_601_000)
  for (const machine of [early, late]) {
    machine.meet(b)
    machine.pass(2000, () => machine.hear(b))
  }
  assert.deepEqual(early.state.view.members, late.state.view.members)
  assert.equal(early.state.view.coordinator, late.state.view.coordinator)
})

test('component() holds only machines joined by links that carry both ways', () => {
  const machine = fresh()
  machine.hear(b, { hears: [a, c] })
  machine.hear(c, { hears: [] })
  assert.deepEqual(component(machine.state), [a, b])
  assert.deepEqual([...reachable(machine.state)].sort(), [a, b])
  machine.hear(c, { hears: [b] })
  assert.deepEqual(component(machine.state), [a, b, c])
  assert.equal(reachable(machine.state).has(c), false)
  assert.equal(hearEachOther(machine.state, b, c), true)
  assert.equal(hearEachOther(machine.state, a, c), false)
})

test('coordinatorOf() prefers machines that are always on, then the holder of the highest epoch, then the lowest id', () => {
  const machine = fresh()
  machine.hear(b)
  machine.hear(c)
  const all = [a, b, c]
  assert.equal(coordinatorOf(machine.state, all), a)
  machine.hear(c, { epoch: { counter: 5, machine: c } })
  assert.equal(coordinatorOf(machine.state, all), c)
  machine.hear(c, { epoch: { counter: 5, machine: c }, role: 'sometimes' })
  assert.equal(coordinatorOf(machine.state, all), a)
})

const roles: fc.Arbitrary<Role> = fc.constantFrom('always', 'sometimes', 'client')
const standing = fc.record({ role: roles, counter: fc.nat(3) })

test('coordinatorOf() names the same machine wherever it is asked', () => {
  fc.assert(
    fc.property(fc.tuple(standing, standing, standing), (standings) => {
      const ids = [a, b, c]
      const chosen = ids.map((self, index) => {
        const machine = new HandDriven(
          selfOf(self, { role: standings[index]?.role ?? 'always' }),
          rosterOf(...ids),
        )
        const own = { counter: standings[index]?.counter ?? 0, machine: self }
        machine.state = { ...machine.state, epochSeen: own }
        for (const [at, id] of ids.entries()) {
          if (id === self) continue
          const { role, counter } = standings[at] ?? { role: 'always', counter: 0 }
          machine.hear(id, { role, epoch: { counter, machine: id } })
        }
        return coordinatorOf(machine.state, ids)
      })
      assert.equal(new Set(chosen).size, 1)
    }),
  )
})

test('nobody coordinates before the view has been still for two seconds', () => {
  const machine = fresh()
  machine.pass(1000, () => machine.hear(b))
  assert.equal(settledCoordinator(machine.state, machine.nowMs), null)
  machine.pass(2500, () => machine.hear(b))
  assert.equal(settledCoordinator(machine.state, machine.nowMs), a)
})

test('a machine alone in its cluster coordinates without waiting', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a))
  machine.pass(250)
  assert.notEqual(machine.state.term, null)
})

test('a machine between two that cannot hear each other keeps both from leading', () => {
  const machine = fresh()
  machine.pass(4000, () => machine.hear(b, { hears: [a, c], follows: c }))
  assert.equal(machine.state.view.coordinator, null)
  assert.equal(machine.state.term, null)
})

test('a machine that left the roster is forgotten within a minute', () => {
  const machine = fresh()
  machine.hear(b)
  const gone = [...rosterOf(b)].map(
    ([key, { version }]) =>
      [key, { version: { ...version, counter: 9 }, value: undefined }] as const,
  )
  machine.give({ kind: 'message', from: b, message: { kind: 'registers', entries: gone } })
  machine.pass(30_000)
  assert.ok(machine.state.peers.has(b))
  machine.pass(30_000)
  assert.equal(machine.state.peers.has(b), false)
})
