// Words of a machine that lies or has gone mad: what does not fit is dropped, and what fits breaks nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  HandDriven,
  a,
  b,
  beatOf,
  c,
  deploymentOf,
  planOf,
  recordOf,
  register,
  rosterOf,
  selfOf,
  tinyModel,
  wishes,
} from '../../test/support/machine-states.ts'
import { parseClusterMessage, parseHeartbeat } from './cluster-messages.ts'
import { generationMessage } from './generation-messages.ts'
import { controlFrame, helloFrame, joinFrame } from './peer-frames.ts'
import { frameFromWorker, frameToWorker } from './worker-frames.ts'

const epoch = { counter: 3, machine: b }
const endpoint = { host: '10.0.0.1', port: 4000 }
const holding = {
  plan: planOf([a, b]),
  planHash: 'x',
  rank: 0,
  epoch,
  state: 'ready',
  sinceMs: 5,
  pid: 1,
  endpoint,
  phase: 'ready',
  fraction: 1,
  tokens: 1,
  contextTokens: 1,
  activeBytes: 1,
  tokensPerSecond: 1,
}
const failure = {
  deployment: 'tiny',
  wish: 1,
  group: 'g1',
  rank: 0,
  cause: 'x',
  excused: false,
  atMs: 1,
}
const formation = { group: 'g1', formation: 0 }

/** One honest message of each kind. */
const honest: readonly unknown[] = [
  { kind: 'record', record: { ...recordOf(b), holdings: [holding], failures: [failure] } },
  { kind: 'record-ask' },
  {
    kind: 'registers',
    entries: [
      ['deployment/x', register(deploymentOf())],
      ['roster/z/1', register(undefined)],
    ],
  },
  { kind: 'registers-ask' },
  { kind: 'group-prepare', epoch, wish: 1, plan: planOf([a, b]), version: '1.0.0' },
  { kind: 'group-prepared', ...formation, endpoints: [{ rank: 0, endpoint }] },
  { kind: 'group-refused', ...formation, reason: 'no', epochSeen: epoch },
  { kind: 'group-commit', epoch, ...formation, endpoints: [endpoint, null], secret: 's' },
  { kind: 'group-stop', epoch, group: 'g1', deployment: 'tiny', reason: 'x', drain: true },
  { kind: 'model-fetch', epoch, model: tinyModel, from: b },
]

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    -1,
    1e308,
    2 ** 53,
    '',
    '__proto__',
    'x'.repeat(5000),
    [],
    {},
    true,
    NaN,
  ),
  fc.jsonValue(),
)

type Path = readonly (string | number)[]

function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

/** The value with what stands at one place exchanged, or taken out. */
function withChange(value: unknown, path: Path, change: { value: unknown } | null): unknown {
  const [key, ...rest] = path
  if (key === undefined) return change === null ? undefined : change.value
  const copy = (
    Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  ) as Record<string | number, unknown>
  if (rest.length === 0 && change === null) delete copy[key]
  else copy[key] = withChange(copy[key], rest, change)
  return copy
}

/** An honest value, spoilt at up to three places. */
function spoilt(values: readonly unknown[]): fc.Arbitrary<unknown> {
  const spoil = fc.record({
    at: fc.nat(),
    change: fc.option(
      odd.map((value) => ({ value })),
      { nil: null },
    ),
  })
  return fc
    .tuple(fc.constantFrom(...values), fc.array(spoil, { minLength: 1, maxLength: 3 }))
    .map(([value, spoils]) => {
      let out: unknown = JSON.parse(JSON.stringify(value))
      for (const { at, change } of spoils) {
        const paths = pathsOf(out)
        out = withChange(out, paths[at % paths.length] ?? [], change)
      }
      return out
    })
}

test('parseClusterMessage() takes every honest message, and loses nothing of it', () => {
  for (const message of honest) {
    const sent: unknown = JSON.parse(JSON.stringify(message))
    assert.deepEqual(JSON.parse(JSON.stringify(parseClusterMessage(sent))), sent)
  }
})

/** A machine that leads and starts groups elsewhere. */
function leading(): HandDriven {
  const registers = new Map([...rosterOf(a, b, c), ...wishes(deploymentOf({ replicas: 3 }))])
  const machine = new HandDriven(selfOf(a), registers)
  machine.meet(b)
  machine.meet(c)
  machine.pass(3000, () => {
    machine.hear(b)
    machine.hear(c)
  })
  assert.notEqual(machine.state.term, null)
  return machine
}

/** A machine that obeys another and holds a rank for it. */
function obeying(): HandDriven {
  const machine = leading()
  const order = { kind: 'group-prepare', wish: 1, plan: planOf([a, b]), version: '1.0.0' } as const
  const message = { ...order, epoch: { counter: 9, machine: b } }
  machine.give({ kind: 'message', from: b, message })
  return machine
}

const machines = fc.constantFrom(leading, obeying)

test('no message of a member breaks a machine, however it is spoilt', () => {
  let taken = 0
  fc.assert(
    fc.property(
      machines,
      fc.array(spoilt(honest), { minLength: 1, maxLength: 6 }),
      (make, messages) => {
        const machine = make()
        for (const value of messages) {
          const message = parseClusterMessage(value)
          if (message === null) continue
          taken += 1
          machine.give({ kind: 'message', from: b, message })
          machine.pass(250, () => machine.hear(c))
        }
        assert.ok(machine.state.holdings.size < 20)
      },
    ),
    { numRuns: 300 },
  )
  assert.ok(taken > 30, `only ${taken} messages were taken`)
})

test('no heartbeat of a member breaks a machine, however it is spoilt', () => {
  fc.assert(
    fc.property(
      machines,
      fc.array(spoilt([beatOf(b), beatOf(c)]), { minLength: 1, maxLength: 6 }),
      (make, beats) => {
        const machine = make()
        for (const value of beats) {
          const beat = parseHeartbeat(value)
          if (beat !== null) machine.give({ kind: 'heartbeat', from: b, link: 'ethernet', beat })
          machine.pass(500)
        }
        assert.ok(machine.state.peers.size <= 2)
      },
    ),
    { numRuns: 200 },
  )
})

test('frames of peers and workers are taken or refused, never thrown at', () => {
  const hello = {
    kind: 'hello',
    protocol: 1,
    purpose: 'control',
    name: 'x',
    version: '1',
    boot: 'b',
    incarnation: 1,
    port: 1,
    link: 'en0',
  }
  const frames = [
    hello,
    { kind: 'beat', sequence: 1, beat: beatOf(b) },
    { kind: 'cluster', message: honest[0] },
    { kind: 'refused', code: 'x', reason: 'y' },
    { kind: 'join-code', invitation: 'x', proof: 'y' },
    { kind: 'welcome', entries: [] },
    {
      kind: 'step',
      step: 1,
      rows: [
        { attempt: 'gen-1.1', position: 0, token: 1, parts: [{ type: 'content', text: 'x' }] },
      ],
    },
    {
      kind: 'finished',
      attempt: 'x',
      reason: 'stop',
      parts: [],
      promptTokens: 1,
      cachedTokens: 0,
      completionTokens: 1,
      reasoningTokens: 0,
    },
    { kind: 'failed', attempt: null, code: 'x', message: 'y' },
    { kind: 'pulse', step: 1, busy: true },
    { kind: 'relay', to: [1], body: {} },
    { kind: 'attempt-token', attempt: 'x', position: 0, token: { id: 1, parts: [] } },
    { kind: 'rank-relay', group: 'g', from: 0, to: 1, number: 0, body: {} },
  ]
  const doors = [
    helloFrame,
    controlFrame,
    joinFrame,
    frameFromWorker,
    frameToWorker,
    generationMessage,
  ]
  for (const frame of frames)
    assert.ok(
      doors.some((door) => door.safeParse(frame).success),
      JSON.stringify(frame).slice(0, 60),
    )
  fc.assert(
    fc.property(fc.oneof(spoilt(frames), odd), (frame) => {
      for (const door of doors) {
        const parsed = door.safeParse(frame)
        assert.equal(typeof parsed.success, 'boolean')
      }
    }),
    { numRuns: 1000 },
  )
})
