import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  deploymentOf,
  planOf,
  recordOf,
  rosterOf,
  selfOf,
  tinyModel,
  wishes,
} from '../../../test/support/machine-states.ts'
import { type Deployment, registerKeys, wantedDeployments } from '../cluster/desired.ts'
import { planHash } from '../cluster/group-plan.ts'
import type { Holding } from '../cluster/record.ts'
import { deploymentId, groupId, modelDigest } from '../ids.ts'
import { clearanceNow, whyNoRoom } from '../serving/making-room.ts'
import { conditionOf } from '../serving/waiting.ts'
import { type Room, describeRoom, roomFor } from './room.ts'

interface Guest {
  readonly name: string
  readonly gb: number
  /** How long ago it was used. */
  readonly idleMs?: number
  readonly queue?: number
  readonly state?: Holding['state']
  readonly stays?: boolean
}

const modelNamed = (name: string) => ({ ...tinyModel, name, digest: modelDigest(`digest-${name}`) })

function wish(name: string, stays = false): Deployment {
  const keepAliveMs = stays ? null : 60_000
  return deploymentOf({ id: deploymentId(name), model: modelNamed(name), keepAliveMs })
}

function holdingOf({ name, gb, idleMs = 60_000, queue = 0, state = 'ready' }: Guest): Holding {
  const about = { group: groupId(`g-${name}`), deployment: deploymentId(name) }
  const plan = planOf([b], { ...about, model: modelNamed(name) }, gb * 1e9)
  return {
    plan,
    planHash: planHash(plan),
    rank: 0,
    epoch: { counter: 1, machine: a },
    state,
    sinceMs: 100_000,
    usedMs: idleMs,
    queue,
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

/** A coordinator that lends nothing, and b with eight gigabytes, these guests, and a wish for "newcomer". */
function house(guests: readonly Guest[], unwanted: readonly string[] = []): HandDriven {
  const wanted = [...guests.map(({ name, stays }) => wish(name, stays)), wish('newcomer')]
  const registers = new Map([...rosterOf(a, b), ...wishes(...wanted)])
  for (const name of unwanted) {
    const key = registerKeys.deployment(deploymentId(name))
    const known = registers.get(key)
    if (known !== undefined) registers.set(key, { ...known, value: undefined })
  }
  const machine = new HandDriven(selfOf(a, { memoryLendBytes: 0 }), registers, 200_000)
  const models = [...guests.map(({ name }) => modelNamed(name)), modelNamed('newcomer')]
  machine.hear(b)
  const record = { ...recordOf(b, { models }), holdings: guests.map(holdingOf) }
  machine.give({ kind: 'message', from: b, message: { kind: 'record', record } })
  return machine
}

function roomIn(machine: HandDriven): Room {
  const wanted = wantedDeployments(machine.state.registers).find(({ id }) => id === 'newcomer')
  assert(wanted !== undefined)
  return roomFor(machine.state, wanted, machine.nowMs)
}

const namesOf = (room: Room): readonly string[] =>
  room.kind === 'clearable' ? room.deployments.map(({ model }) => model.name) : []

test('roomFor() unloads nothing when there is room', () => {
  assert.deepEqual(roomIn(house([{ name: 'one', gb: 5 }])), { kind: 'fits' })
})

test('roomFor() lets the model go that was used longest ago, and no more than needed', () => {
  const room = roomIn(
    house([
      { name: 'morning', gb: 3, idleMs: 90_000 },
      { name: 'noon', gb: 3, idleMs: 50_000 },
      { name: 'evening', gb: 2, idleMs: 10_000 },
    ]),
  )
  assert.deepEqual(namesOf(room), ['morning'])
  const tiny = roomIn(
    house([
      { name: 'crumb', gb: 0.2, idleMs: 90_000 },
      { name: 'loaf', gb: 7.5, idleMs: 10_000 },
    ]),
  )
  assert.deepEqual(namesOf(tiny), ['loaf'], 'what frees too little to help stays')
})

test('roomFor() never takes what has answers to finish, is loading, was just used, or was loaded to stay', () => {
  const full = { name: 'one', gb: 8 }
  for (const guest of [
    { ...full, queue: 1 },
    { ...full, state: 'loading' as const },
    { ...full, idleMs: 100 },
  ]) {
    const room = roomIn(house([guest]))
    assert.equal(room.kind, 'busy')
    if (room.kind === 'busy') assert.match(describeRoom(room), /waiting for one to be idle/)
  }
  const room = roomIn(house([{ ...full, stays: true }]))
  assert.equal(room.kind, 'full')
  if (room.kind === 'full') assert.match(describeRoom(room), /one was loaded to stay/)
})

test('roomFor() waits for those that are already going instead of unloading others', () => {
  const guests = [
    { name: 'leaver', gb: 4, state: 'stopping' as const },
    { name: 'stayer', gb: 4 },
  ]
  assert.deepEqual(roomIn(house(guests, ['leaver'])), { kind: 'clearing', leaving: ['leaver'] })
})

test('clearanceNow() is the word of the coordinator alone, and conditionOf() tells people', () => {
  const machine = house([{ name: 'one', gb: 8 }])
  assert.equal(clearanceNow(machine.state, machine.nowMs), null, 'nobody coordinates yet')
  machine.pass(3000, () => machine.hear(b))
  const clearance = clearanceNow(machine.state, machine.nowMs)
  assert.equal(clearance?.wanted.model.name, 'newcomer')
  assert.deepEqual(
    clearance.gone.map(({ model }) => model.name),
    ['one'],
  )
  const { detail } = conditionOf(machine.state, clearance.wanted, machine.nowMs)
  assert.equal(detail, 'one makes room for it')
})

test('whyNoRoom() denies only what nothing can help, and not while a machine is away', () => {
  const id = deploymentId('newcomer')
  const machine = house([{ name: 'one', gb: 8, stays: true }])
  machine.pass(3000, () => machine.hear(b))
  const why = whyNoRoom(machine.state, id, machine.nowMs) ?? ''
  assert.match(why, /^newcomer cannot be loaded: .*needs 1\.3 GB, 0\.0 GB free of the 8\.0 GB/)
  const busy = house([{ name: 'one', gb: 8, queue: 1 }])
  busy.pass(3000, () => busy.hear(b))
  assert.equal(whyNoRoom(busy.state, id, busy.nowMs), null)
  machine.pass(8000)
  assert.equal(whyNoRoom(machine.state, id, machine.nowMs), null, 'b is away')
})
