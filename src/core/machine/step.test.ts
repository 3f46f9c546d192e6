import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  c,
  deploymentOf,
  kindsOf,
  planOf,
  recordOf,
  register,
  rosterOf,
  selfOf,
  sentTo,
  wishes,
} from '../../../test/support/machine-states.ts'
import { isMachineRemoved, registerKeys, roster } from '../cluster/desired.ts'
import { groupId } from '../ids.ts'

const removed = (counter = 50) =>
  [registerKeys.roster(b, 'first'), { ...register(undefined, counter) }] as const

test('stepMachine() puts the journal before every message that a crash could make a lie', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.meet(b)
  const effects = machine.give({
    kind: 'registers-write',
    writes: [{ key: 'setting/x', value: 1 }],
  })
  const kinds = kindsOf(effects)
  assert.equal(kinds[0], 'journal-write')
  assert.deepEqual(sentTo(effects, b), ['registers'])
})

test('stepMachine() listens to nobody outside the roster', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  const before = machine.state
  machine.hear(c)
  const entries = [['setting/x', register(1, 99, c)]] as const
  for (const message of [
    { kind: 'registers', entries },
    { kind: 'record', record: recordOf(c) },
    {
      kind: 'group-stop',
      epoch: { counter: 9, machine: c },
      group: groupId('g'),
      deployment: 'x' as never,
      reason: '',
      drain: false,
    },
    {
      kind: 'group-prepare',
      epoch: { counter: 9, machine: c },
      wish: 1,
      plan: planOf([a]),
      version: '1.0.0',
    },
  ] as const) {
    assert.deepEqual(machine.give({ kind: 'message', from: c, message }), [])
  }
  assert.equal(machine.state.registers, before.registers)
  assert.equal(machine.state.holdings.size, 0)
  assert.equal(machine.state.epochSeen, before.epochSeen)
  assert.equal(machine.state.peers.size, 0)
})

test('stepMachine() lets nobody speak for another machine', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b, c))
  machine.meet(b)
  machine.hear(c)
  const record = { ...recordOf(b), revision: 99, name: 'stolen' }
  machine.give({ kind: 'message', from: c, message: { kind: 'record', record } })
  assert.equal(machine.state.peers.get(b)?.record?.name, 'b')
})

test('a removed machine stays out though an old backup of it, and of others, says otherwise', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b, c))
  machine.meet(b)
  machine.meet(c)
  machine.give({ kind: 'message', from: c, message: { kind: 'registers', entries: [removed()] } })
  assert.ok(isMachineRemoved(machine.state.registers, b))
  // c comes back from a backup of the day before, and even writes the entry anew above everything.
  const old = [...rosterOf(a, b, c)]
  const anew = [
    registerKeys.roster(b, 'first'),
    register({ machine: b, name: 'b', publicKey: '', addresses: [] }, 1000, c),
  ] as const
  machine.give({
    kind: 'message',
    from: c,
    message: { kind: 'registers', entries: [...old, anew] },
  })
  assert.equal(roster(machine.state.registers).has(b), false)
  // Only a new invitation lets it in.
  const again = [
    registerKeys.roster(b, 'second'),
    register({ machine: b, name: 'b', publicKey: '', addresses: [] }, 60, c),
  ] as const
  machine.give({ kind: 'message', from: c, message: { kind: 'registers', entries: [again] } })
  assert.ok(roster(machine.state.registers).has(b))
})

test('the words of a removed machine count for nothing from then on', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b, c))
  machine.meet(b)
  machine.give({ kind: 'message', from: b, message: { kind: 'registers', entries: [removed()] } })
  machine.give({
    kind: 'message',
    from: b,
    message: { kind: 'registers', entries: [['setting/x', register(1, 99, b)]] },
  })
  assert.equal(machine.state.registers.has('setting/x'), false)
})

test('of two machines with one identity the newer life is believed, and neither causes a storm', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  const clones = [
    { boot: 'original', incarnation: 10 },
    { boot: 'copy', incarnation: 12 },
  ]
  let sent = 0
  for (let beat = 0; beat < 40; beat++) {
    machine.nowMs += 250
    for (const clone of clones) sent += machine.hear(b, clone).length
    sent += machine
      .give({ kind: 'tick', lagMs: 0, progress: [] })
      .filter((effect) => effect.kind === 'message-send').length
  }
  assert.equal(machine.state.peers.get(b)?.boot, 'copy')
  // Ten seconds: one question for the record in each.
  assert.ok(sent <= 15, `${sent} effects`)
})

test('a beat of an earlier life that comes late changes nothing', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.hear(b, { boot: 'new', incarnation: 11 })
  const before = machine.state
  machine.hear(b, { boot: 'old', incarnation: 10 })
  assert.equal(machine.state.peers.get(b), before.peers.get(b))
})

test('a machine that comes back as a new life is asked what it runs', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.meet(b)
  machine.nowMs += 2000
  const effects = machine.hear(b, { boot: 'new', incarnation: 11 })
  assert.equal(machine.state.peers.get(b)?.record, null)
  assert.deepEqual(sentTo(effects, b), ['record-ask'])
})

test('a record of another life than the one that beats is not believed', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.hear(b, { boot: 'new', incarnation: 11 })
  const record = { ...recordOf(b), revision: 500 }
  machine.give({ kind: 'message', from: b, message: { kind: 'record', record } })
  assert.equal(machine.state.peers.get(b)?.record, null)
})

test('a machine writes no desired state before it has heard what it missed', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.pass(1000, () => machine.hear(b, { digest: 'something newer' }))
  assert.equal(machine.state.caughtUp, false)
  machine.hear(b, { digest: machine.state.registersDigest })
  assert.equal(machine.state.caughtUp, true)
})

test('with nobody to ask, it waits a moment and goes on with what it has', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a, b))
  machine.pass(3000)
  assert.equal(machine.state.caughtUp, false)
  machine.pass(1500)
  assert.equal(machine.state.caughtUp, true)
})

test('a machine that joins starts nothing before it has heard what its cluster already runs', () => {
  const machine = new HandDriven(selfOf(a), rosterOf(a))
  machine.pass(20_000)
  const registers = new Map([...rosterOf(a, b), ...wishes(deploymentOf())])
  machine.give({ kind: 'registers-replace', registers })
  const effects = machine.pass(1000)
  assert.equal(machine.state.caughtUp, false)
  assert.deepEqual(sentTo(effects, a), [])
  assert.equal(machine.state.starts.size, 0)
})

test('a machine that slept ends its ranks: others went on without it', () => {
  const machine = new HandDriven(selfOf(a), new Map([...rosterOf(a), ...wishes(deploymentOf())]))
  startAlone(machine)
  const [holding] = machine.state.holdings.values()
  assert.equal(holding?.state, 'ready')
  const effects = machine.give({ kind: 'woken', sleptMs: 60_000 })
  const stop = effects.find((effect) => effect.kind === 'rank-stop')
  assert.match(stop?.kind === 'rank-stop' ? stop.cause : '', /slept for 60 s/)
})

/** Its own orders come back to it as messages do. */
function startAlone(machine: HandDriven): void {
  for (let turn = 0; turn < 20; turn++) {
    for (const effect of machine.pass(250)) {
      if (effect.kind === 'message-send' && effect.to === a)
        queue.push({ kind: 'message', from: a, message: effect.message })
      if (effect.kind === 'rank-start') {
        const { group } = effect.plan
        queue.push({ kind: 'rank-report', group, rank: 0, report: { kind: 'started', pid: 7 } })
        const ready = { kind: 'ready', contextTokens: 100, activeBytes: 1 } as const
        queue.push({ kind: 'rank-report', group, rank: 0, report: ready })
      }
    }
    for (let input = queue.shift(); input !== undefined; input = queue.shift()) {
      for (const effect of machine.give(input)) {
        if (effect.kind === 'message-send' && effect.to === a)
          queue.push({ kind: 'message', from: a, message: effect.message })
        if (effect.kind === 'rank-start')
          queue.push({
            kind: 'rank-report',
            group: effect.plan.group,
            rank: 0,
            report: { kind: 'ready', contextTokens: 100, activeBytes: 1 },
          })
      }
    }
  }
}

const queue: Parameters<HandDriven['give']>[0][] = []
