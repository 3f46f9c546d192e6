import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { HandClock } from '../../test/support/hand-clock.ts'
import { a, b, c, group } from '../../test/support/machine-states.ts'
import type { AttemptId } from '../core/ids.ts'
import type { Question, Usage } from '../core/serving/request.ts'
import type { AttemptMessage, RelayMessage } from '../wire/generation-messages.ts'
import { AttemptServer } from './attempt-server.ts'
import type { AttemptHost, AttemptOrder, AttemptSink } from './attempts.ts'
import { Relays } from './relays.ts'
import { RemoteAttempts } from './remote-attempts.ts'

const attempt = 'gen-1.1' as AttemptId
const order: AttemptOrder = { attempt, group: group('g1'), question: {} as Question, replay: [] }
const usage: Usage = { promptTokens: 7, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }

/** A sink that writes down what it hears. */
function listener(): { heard: string[]; sink: AttemptSink } {
  const heard: string[] = []
  const sink: AttemptSink = {
    accepted: () => heard.push('accepted'),
    progressed: () => undefined,
    paused: ({ cause }) => heard.push(`paused: ${cause}`),
    token: (position, { id }) => heard.push(`${position}:${id}`),
    finished: () => heard.push('finished'),
    refused: ({ code }) => heard.push(`refused ${code}`),
    lost: () => heard.push('lost'),
  }
  return { heard, sink }
}

/** Ranks on the other machine, worked by hand. */
class Ranks implements AttemptHost {
  readonly sinks = new Map<string, AttemptSink>()
  readonly cancelled: string[] = []
  submits = 0

  submit(submitted: AttemptOrder, sink: AttemptSink): void {
    this.submits += 1
    this.sinks.set(submitted.attempt, sink)
  }

  cancel(id: AttemptId): void {
    this.cancelled.push(id)
    this.sinks.delete(id)
  }

  get sink(): AttemptSink {
    const [sink] = this.sinks.values()
    assert.ok(sink !== undefined)
    return sink
  }
}

/** A gateway on a, a server on b, and between them what the test does to every message. */
function pair(carry: (message: AttemptMessage, deliver: () => void) => void): {
  clock: HandClock
  remote: RemoteAttempts
  ranks: Ranks
} {
  const clock = new HandClock()
  const ranks = new Ranks()
  const remote = new RemoteAttempts({
    clock,
    send: (_to, message) => {
      carry(message, () => server.take(a, message))
      return true
    },
  })
  const server = new AttemptServer({
    clock,
    host: ranks,
    send: (_to, message) => carry(message, () => remote.take(b, message)),
  })
  return { clock, remote, ranks }
}

test('tokens from another machine come whole, in order and once, whatever is lost, doubled or late', () => {
  const fates = fc.array(fc.constantFrom('deliver', 'lose', 'twice', 'late'), { maxLength: 60 })
  fc.assert(
    fc.property(fates, fc.integer({ min: 1, max: 20 }), (fate, length) => {
      const late: (() => void)[] = []
      let at = 0
      const { clock, remote, ranks } = pair((_, deliver) => {
        const does = fate[at++] ?? 'deliver'
        if (does === 'deliver' || does === 'twice') deliver()
        if (does === 'twice') deliver()
        if (does === 'late') late.push(deliver)
      })
      const { heard, sink } = listener()
      remote.hostOn(b).submit(order, sink)
      for (let tries = 0; ranks.submits === 0 && heard.length === 0 && tries < 200; tries++) {
        clock.pass(1000)
        late.shift()?.()
      }
      if (ranks.submits > 0) {
        ranks.sink.accepted(7, 0)
        for (let position = 0; position < length; position++) {
          ranks.sink.token(position, { id: position, parts: [] })
          if (position % 3 === 0) late.shift()?.()
        }
        ranks.sink.finished('stop', [], { ...usage, completionTokens: length })
      }
      for (const deliver of late) deliver()
      for (let tries = 0; tries < 100; tries++) clock.pass(1000)
      const tokens = heard.filter((word) => word.includes(':'))
      assert.deepEqual(
        tokens,
        tokens.map((_, index) => `${index}:${index}`),
      )
      const ends = heard.filter((word) => word === 'finished' || word === 'lost')
      assert.equal(ends.length, 1, heard.join())
      if (ends[0] === 'finished') assert.equal(tokens.length, length)
      assert.equal(heard.at(-1), ends[0])
    }),
  )
})

test('that a group was put together again is heard where the answer is read', () => {
  const { remote, ranks } = pair((_, deliver) => deliver())
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  ranks.sink.paused({ cause: 'rank 1 was lost', waitedMs: 5, reworkedMs: 7 })
  assert.deepEqual(heard, ['paused: rank 1 was lost'])
})

test('only the machine that was asked may answer', () => {
  const { remote } = pair((_, deliver) => deliver())
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  remote.take(c, { kind: 'attempt-token', attempt, position: 0, token: { id: 1, parts: [] } })
  remote.take(c, { kind: 'attempt-lost', attempt, cause: 'lies' })
  assert.deepEqual(heard, [])
})

test('whoever works on an attempt that was given up is told again when the first word was lost', () => {
  let isLost = false
  const { remote, ranks } = pair((message, deliver) => {
    if (message.kind === 'attempt-cancel' && !isLost) isLost = true
    else deliver()
  })
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  const worker = ranks.sink
  remote.hostOn(b).cancel(attempt)
  assert.deepEqual(ranks.cancelled, [])
  worker.token(0, { id: 0, parts: [] })
  assert.equal(ranks.cancelled.length, 1)
  assert.deepEqual(heard, [])
})

test('a machine that was lost ends its attempts, and what it says later is not heard', () => {
  const { remote, ranks } = pair((_, deliver) => deliver())
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  remote.loseMachine(b, 'gone')
  ranks.sink.token(0, { id: 0, parts: [] })
  assert.deepEqual(heard, ['lost'])
})

test('an attempt that the other machine has forgotten is lost, not waited for', () => {
  const clock = new HandClock()
  const sent: AttemptMessage[] = []
  const server = new AttemptServer({
    clock,
    host: new Ranks(),
    send: (_to, message) => sent.push(message),
  })
  server.take(a, { kind: 'attempt-resync', attempt: 'gen-9.1', position: 0 })
  assert.deepEqual(
    sent.map(({ kind }) => kind),
    ['attempt-lost'],
  )
})

test('an order that comes after its attempt was called unknown is not taken up', () => {
  const late: (() => void)[] = []
  const { clock, remote, ranks } = pair((message, deliver) => {
    if (message.kind === 'attempt-submit') late.push(deliver)
    else deliver()
  })
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  clock.pass(5000)
  assert.deepEqual(heard, ['lost'])
  for (const deliver of late) deliver()
  assert.equal(ranks.submits, 0)
})

test('whoever takes up an attempt that was given up is told so before its first token', () => {
  const late: (() => void)[] = []
  const { remote, ranks } = pair((message, deliver) => {
    if (message.kind === 'attempt-submit') late.push(deliver)
    else deliver()
  })
  const { heard, sink } = listener()
  remote.hostOn(b).submit(order, sink)
  remote.hostOn(b).cancel(attempt)
  for (const deliver of late) deliver()
  ranks.sink.accepted(7, 0)
  assert.equal(ranks.cancelled.length, 1)
  assert.deepEqual(heard, [])
})

test('two gateways that count their attempts alike are kept apart', () => {
  const clock = new HandClock()
  const ranks = new Ranks()
  const server = new AttemptServer({ clock, host: ranks, send: () => undefined })
  const submit = {
    kind: 'attempt-submit',
    attempt: 'gen-1.1',
    group: 'g1',
    question: {},
    replay: [],
  } as never
  server.take(a, submit)
  server.take(c, submit)
  server.take(a, submit)
  assert.equal(ranks.submits, 2)
  server.take(c, { kind: 'attempt-cancel', attempt: 'gen-1.1' })
  assert.deepEqual(ranks.cancelled, ['gen-1.1.cccccccc'])
})

test('Relays hand words on in order and once, though they are lost, doubled and late', () => {
  const fates = fc.array(fc.constantFrom('deliver', 'lose', 'twice', 'late'), { maxLength: 40 })
  fc.assert(
    fc.property(fates, fc.integer({ min: 1, max: 12 }), (fate, count) => {
      const clock = new HandClock()
      const late: (() => void)[] = []
      const heard: unknown[] = []
      let at = 0
      const carry = (deliver: () => void): void => {
        const does = fate[at++] ?? 'deliver'
        if (does === 'deliver' || does === 'twice') deliver()
        if (does === 'twice') deliver()
        if (does === 'late') late.push(deliver)
      }
      const ports = { clock, giveUp: () => assert.fail('gave up') }
      const near = new Relays({
        ...ports,
        send: (_to, message) => carry(() => far.take(a, message)),
        deliver: () => false,
      })
      const far: Relays = new Relays({
        ...ports,
        send: (_to, message: RelayMessage) => carry(() => near.take(b, message)),
        deliver: (_to, _from, body) => heard.push(body['task']) > 0,
      })
      const tasks = Array.from({ length: count }, (_, index) => index)
      for (const task of tasks)
        near.say({ machine: b, group: group('g1'), formation: 0, from: 0, to: 1, body: { task } })
      for (const deliver of late) deliver()
      clock.pass(60_000)
      assert.deepEqual(heard, tasks)
    }),
  )
})

test('Relays give a group up when a rank hears nothing for too long', () => {
  const clock = new HandClock()
  const causes: string[] = []
  const relays = new Relays({
    clock,
    send: () => undefined,
    deliver: () => false,
    giveUp: (_group, cause) => causes.push(cause),
  })
  for (let word = 0; word <= 1024; word++)
    relays.say({ machine: b, group: group('g1'), formation: 0, from: 0, to: 1, body: {} })
  assert.match(causes[0] ?? '', /has not heard 1025 operations/)
})
