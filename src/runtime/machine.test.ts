import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HandClock } from '../../test/support/hand-clock.ts'
import {
  a,
  b,
  beatOf,
  deploymentOf,
  recordOf,
  rosterOf,
  selfOf,
  wishes,
} from '../../test/support/machine-states.ts'
import type { ClusterMessage } from '../core/cluster/messages.ts'
import { initialState } from '../core/cluster/state.ts'
import { limits } from '../core/limits.ts'
import type { Journal } from '../ports/journal.ts'
import { Machine } from './machine.ts'

/** A disk that can be filled. */
class Disk implements Journal {
  isFull = false

  save(_snapshot: unknown, done: (error: Error | null) => void): void {
    done(this.isFull ? new Error('no space left on device') : null)
  }
}

/** A coordinator that lends nothing, and b, which could hold what is wanted and never answers. */
function coordinatorWith(disk: Disk): { sent: ClusterMessage[]; pass: (ms: number) => void } {
  const clock = new HandClock()
  const sent: ClusterMessage[] = []
  const registers = new Map([...rosterOf(a, b), ...wishes(deploymentOf())])
  const machine = new Machine(
    initialState(selfOf(a, { memoryLendBytes: 0 }), { registers, nowMs: 0 }),
    {
      clock,
      entropy: { hex: (bytes) => 'e'.repeat(bytes * 2) },
      network: {
        listen: () => undefined,
        beat: () => undefined,
        sendCluster: (_to, message) => void sent.push(message),
        sendGeneration: () => true,
      },
      journal: disk,
      ranks: { perform: () => undefined, progress: () => [] },
      notes: { note: () => undefined },
    },
  )
  const hear = (): void => {
    const digest = machine.state.registersDigest
    const beat = beatOf(b, { digest, hears: [a] })
    machine.post({ kind: 'heartbeat', from: b, link: 'ethernet', beat })
  }
  hear()
  machine.post({ kind: 'message', from: b, message: { kind: 'record', record: recordOf(b) } })
  machine.start()
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += limits.tickEveryMs) {
      hear()
      clock.pass(limits.tickEveryMs)
    }
  }
  return { sent, pass }
}

const ordersIn = (sent: readonly ClusterMessage[]): number =>
  sent.filter(({ kind }) => kind === 'group-prepare' || kind === 'group-stop').length

test('Machine says what waited a moment for the journal', () => {
  const disk = new Disk()
  const { sent, pass } = coordinatorWith(disk)
  disk.isFull = true
  pass(3000)
  assert.equal(ordersIn(sent), 0)
  disk.isFull = false
  pass(1000)
  assert.ok(ordersIn(sent) > 0)
})

test('Machine does not pour out all that waited while the disk was full for a minute', () => {
  const disk = new Disk()
  const { sent, pass } = coordinatorWith(disk)
  disk.isFull = true
  pass(60_000)
  assert.equal(ordersIn(sent), 0)
  disk.isFull = false
  pass(1000)
  const orders = ordersIn(sent)
  assert.ok(orders > 0 && orders <= 8, `${orders} orders at once`)
})
