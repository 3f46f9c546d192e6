import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  HandDriven,
  a,
  b,
  c,
  planOf,
  recordOf,
  rosterOf,
  selfOf,
} from '../../../test/support/machine-states.ts'
import { machineId } from '../ids.ts'
import { headMachine, machinesOf, placedRanks, planHash } from './group-plan.ts'
import { groupsSeen } from './groups.ts'
import { rankLinks } from './rank-links.ts'
import type { Holding, MachineRecord, RankState } from './record.ts'

function holdingOf(rank: number, state: RankState, machines = [a, b]): Holding {
  const plan = planOf(machines)
  return {
    plan,
    planHash: planHash(plan),
    rank,
    epoch: { counter: 1, machine: a },
    state,
    sinceMs: 0,
    pid: 1,
    endpoint: null,
    phase: '',
    fraction: 0,
    tokens: 0,
    contextTokens: 0,
    activeBytes: 0,
    tokensPerSecond: 0,
  }
}

/** A machine that hears b and c, which hold these ranks of one group. */
function watcher(ranks: readonly (Holding | null)[]): HandDriven {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b, c))
  for (const [index, id] of [b, c].entries()) {
    machine.hear(id)
    const holding = ranks[index] ?? null
    const holdings = holding === null ? [] : [holding]
    const record: MachineRecord = { ...recordOf(id), holdings }
    machine.give({ kind: 'message', from: id, message: { kind: 'record', record } })
  }
  return machine
}

test('groupsSeen() calls a group ready only when every rank of it is', () => {
  const both = watcher([holdingOf(0, 'ready', [b, c]), holdingOf(1, 'ready', [b, c])])
  assert.equal(groupsSeen(both.state)[0]?.status, 'ready')
  const one = watcher([holdingOf(0, 'ready', [b, c]), holdingOf(1, 'loading', [b, c])])
  assert.equal(groupsSeen(one.state)[0]?.status, 'forming')
  const ending = watcher([holdingOf(0, 'ready', [b, c]), holdingOf(1, 'stopping', [b, c])])
  assert.equal(groupsSeen(ending.state)[0]?.status, 'stopping')
})

test('groupsSeen() calls a group broken when a machine says that it no longer holds its rank', () => {
  const machine = watcher([holdingOf(0, 'ready', [b, c]), null])
  assert.equal(groupsSeen(machine.state)[0]?.status, 'broken')
})

test('groupsSeen() takes no rank for lost while its machine lives and has not spoken', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b, c))
  machine.hear(b)
  machine.hear(c)
  const record: MachineRecord = { ...recordOf(b), holdings: [holdingOf(0, 'ready', [b, c])] }
  machine.give({ kind: 'message', from: b, message: { kind: 'record', record } })
  const [seen] = groupsSeen(machine.state)
  assert.equal(seen?.ranks[1]?.state, 'unknown')
  assert.equal(seen.status, 'forming')
})

test('groupsSeen() calls a group broken once the machine of a rank is dead', () => {
  const machine = watcher([holdingOf(0, 'ready', [b, c]), holdingOf(1, 'ready', [b, c])])
  machine.pass(4000, () => machine.hear(b))
  assert.equal(groupsSeen(machine.state)[0]?.status, 'broken')
})

test('groupsSeen() takes a rank for left over as long as it waits for answers that its group no longer gives', () => {
  const elsewhere = { ...planOf([c, a]), formation: 1 }
  const placed = { ...holdingOf(0, 'ready', [c, a]), plan: elsewhere, planHash: 'next' }
  const leftovers = (holding: Holding): readonly string[] | undefined =>
    groupsSeen(watcher([holding, placed]).state)[0]?.leftovers
  const old = holdingOf(0, 'stopping', [b, c])
  assert.deepEqual(leftovers({ ...old, phase: 'draining' }), [b])
  assert.deepEqual(leftovers({ ...old, phase: 'stopping' }), [])
  assert.deepEqual(leftovers({ ...old, state: 'ready' }), [b])
})

test('planHash() is the same for the same plan, and another for any other', () => {
  const plan = planOf([a, b])
  assert.equal(planHash(plan), planHash(JSON.parse(JSON.stringify(plan)) as typeof plan))
  const others = [
    planOf([b, a]),
    planOf([a]),
    planOf([a, b], { formation: 1 }),
    planOf([a, b], { contextTokens: 4097 }),
    planOf([a, b], {}, 2e9 + 1),
  ]
  assert.equal(new Set([plan, ...others].map(planHash)).size, 6)
})

test('placedRanks() numbers ranks through the stages, and the head is the first', () => {
  const plan = planOf([c, a, b])
  assert.deepEqual(
    placedRanks(plan).map(({ rank, stage, machine }) => [rank, stage, machine]),
    [
      [0, 0, c],
      [1, 1, a],
      [2, 2, b],
    ],
  )
  assert.equal(headMachine(plan), c)
  assert.deepEqual(machinesOf(plan), [c, a, b])
})

/** Worlds of any sizes in a row. */
const worlds = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 })

test('rankLinks() lets every rank be dialled by exactly the one that it expects', () => {
  fc.assert(
    fc.property(worlds, (sizes) => {
      const stages = sizes.map((size, stage) => ({
        layers: [stage, stage + 1] as const,
        ranks: Array.from({ length: size }, (_, index) => ({
          machine: machineId(`m${stage}.${index}`),
          memoryBytes: 1,
          share: 1 / size,
        })),
        backend: 'none' as const,
        worldStrategy: 'none' as const,
      }))
      const plan = planOf([a], { stages })
      const count = placedRanks(plan).length
      const links = Array.from({ length: count }, (_, rank) => rankLinks(plan, rank))
      for (const [rank, { from }] of links.entries()) {
        const dialling = links.flatMap((other, index) =>
          other.next === rank || other.back === rank || other.followers.includes(rank)
            ? [index]
            : [],
        )
        assert.deepEqual(dialling, from === null ? [] : [from])
      }
    }),
  )
})
