import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { a, b } from '../../../test/support/machine-states.ts'
import { assertNever } from '../assert.ts'
import { type AttemptId, deploymentId, generationId, groupId } from '../ids.ts'
import { limits } from '../limits.ts'
import {
  type Generation,
  type GenerationAction,
  type GenerationInput,
  advanceGeneration,
  beginGeneration,
} from './generation.ts'
import type { GenerationRequest, Question, Token, Usage } from './request.ts'

const request: GenerationRequest = {
  id: generationId('gen-1'),
  deployment: deploymentId('tiny'),
  question: {} as Question,
}
const [g1, g2] = [groupId('g1'), groupId('g2')]
const token = (id: number): Token => ({ id, parts: [] })
const usageOf = (completionTokens: number): Usage => ({
  promptTokens: 7,
  cachedTokens: 0,
  completionTokens,
  reasoningTokens: 0,
})

/** A generation that is fed by hand and remembers what it did. */
class Fed {
  generation: Generation
  actions: GenerationAction[]
  nowMs = 0

  constructor() {
    const step = beginGeneration(request, 0)
    this.generation = step.generation
    this.actions = [...step.actions]
  }

  give(input: GenerationInput): readonly GenerationAction[] {
    const step = advanceGeneration(this.generation, input, this.nowMs)
    this.generation = step.generation
    this.actions.push(...step.actions)
    return step.actions
  }

  offer(group = g1, machine = a): AttemptId {
    this.give({ kind: 'group-offered', group, machine })
    const { attempt } = this.generation
    assert.ok(attempt !== null)
    return attempt.id
  }

  tokens(attempt: AttemptId, from: number, count: number): void {
    for (let position = from; position < from + count; position++)
      this.give({ kind: 'token-received', attempt, position, token: token(position) })
  }

  get sent(): readonly number[] {
    return this.actions.flatMap((action) =>
      action.kind === 'client-token' ? [action.token.id] : [],
    )
  }

  get ends(): readonly GenerationAction[] {
    return this.actions.filter(({ kind }) => kind === 'client-finish' || kind === 'client-fail')
  }
}

test('a generation that loses its attempt goes on where the client stands', () => {
  const fed = new Fed()
  const first = fed.offer()
  fed.give({ kind: 'attempt-accepted', attempt: first, promptTokens: 7, cachedTokens: 0 })
  fed.tokens(first, 0, 3)
  const lost = fed.give({ kind: 'attempt-lost', attempt: first, cause: 'the rank ended' })
  assert.deepEqual(
    lost.map(({ kind }) => kind),
    ['attempt-cancel', 'group-ask'],
  )
  assert.deepEqual(lost[1]?.kind === 'group-ask' ? lost[1].avoid : null, [g1])
  const second = fed.offer(g2, b)
  const start = fed.actions.findLast(({ kind }) => kind === 'attempt-start')
  assert.deepEqual(start?.kind === 'attempt-start' ? [...start.replay] : null, [0, 1, 2])
  fed.give({ kind: 'attempt-accepted', attempt: second, promptTokens: 10, cachedTokens: 10 })
  fed.tokens(second, 3, 2)
  fed.give({
    kind: 'attempt-finished',
    attempt: second,
    reason: 'stop',
    parts: [],
    usage: usageOf(5),
  })
  assert.deepEqual(fed.sent, [0, 1, 2, 3, 4])
  assert.deepEqual(fed.ends, [
    { kind: 'client-finish', reason: 'stop', parts: [], usage: usageOf(5) },
  ])
  assert.equal(fed.actions.filter(({ kind }) => kind === 'client-accept').length, 1)
  assert.equal(fed.generation.history[0]?.cause, 'the rank ended')
})

test('the words of an attempt that was given up are not heard', () => {
  const fed = new Fed()
  const first = fed.offer()
  fed.tokens(first, 0, 1)
  fed.give({ kind: 'attempt-lost', attempt: first, cause: 'lost' })
  const second = fed.offer(g2)
  fed.tokens(first, 1, 5)
  fed.give({
    kind: 'attempt-finished',
    attempt: first,
    reason: 'stop',
    parts: [],
    usage: usageOf(6),
  })
  fed.give({ kind: 'attempt-refused', attempt: first, error: { code: 'x', message: 'x' } })
  fed.give({ kind: 'attempt-lost', attempt: first, cause: 'again' })
  assert.deepEqual(fed.sent, [0])
  assert.equal(fed.generation.attempt?.id, second)
})

test('a pause that the group itself explains is told in its parts, and none that it does not', () => {
  const fed = new Fed()
  const attempt = fed.offer()
  fed.tokens(attempt, 0, 3)
  fed.nowMs += limits.pauseNotedMs - 1
  fed.tokens(attempt, 3, 1)
  assert.equal(fed.generation.gaps.length, 0)
  const pause = { cause: 'rank 1 was lost', waitedMs: 1200, reworkedMs: 300 }
  fed.nowMs += 2000
  fed.give({ kind: 'attempt-paused', attempt, pause })
  fed.tokens(attempt, 4, 2)
  const place = { group: g1, machine: a }
  assert.deepEqual(fed.generation.gaps, [
    { ...pause, atToken: 4, noticedMs: 500, from: place, to: place },
  ])
  fed.nowMs += limits.pauseNotedMs
  fed.tokens(attempt, 6, 1)
  const unexplained = fed.generation.gaps.at(-1)
  assert.equal(unexplained?.cause, 'its group paused')
  assert.equal(unexplained.reworkedMs, limits.pauseNotedMs)
})

test('a token that leaves a gap ends the attempt instead of reaching the client', () => {
  const fed = new Fed()
  const attempt = fed.offer()
  fed.tokens(attempt, 0, 2)
  fed.tokens(attempt, 3, 1)
  assert.deepEqual(fed.sent, [0, 1])
  assert.equal(fed.generation.phase, 'waiting')
  assert.match(fed.generation.history[0]?.cause ?? '', /token 3 came where 2 was due/)
})

test('an end that comes before all of its tokens is no end', () => {
  const fed = new Fed()
  const attempt = fed.offer()
  fed.tokens(attempt, 0, 2)
  fed.give({ kind: 'attempt-finished', attempt, reason: 'stop', parts: [], usage: usageOf(4) })
  assert.deepEqual(fed.ends, [])
  assert.equal(fed.generation.phase, 'waiting')
})

test('a refusal is final', () => {
  const fed = new Fed()
  const attempt = fed.offer()
  const error = { code: 'context-exceeded', message: 'too long' }
  fed.give({ kind: 'attempt-refused', attempt, error })
  assert.deepEqual(fed.ends, [{ kind: 'client-fail', error }])
  assert.deepEqual(fed.give({ kind: 'group-offered', group: g2, machine: b }), [])
})

test('attempts that nobody took up do not wear a request out; those that were do', () => {
  const untaken = new Fed()
  for (let count = 0; count < limits.attemptsPerGenerationMax * 2; count++)
    untaken.give({ kind: 'attempt-lost', attempt: untaken.offer(), cause: 'no link' })
  assert.deepEqual(untaken.ends, [])
  const taken = new Fed()
  for (let count = 0; count < limits.attemptsPerGenerationMax; count++) {
    const attempt = taken.offer()
    taken.tokens(attempt, count, 1)
    taken.give({ kind: 'attempt-lost', attempt, cause: 'the machine burnt' })
  }
  const [end] = taken.ends
  assert.ok(end?.kind === 'client-fail')
  assert.match(end.error.message, /12 times.*the machine burnt/)
})

test('waiting has a deadline, and the error says for what', () => {
  const fed = new Fed()
  fed.nowMs = limits.readyWaitMsMax - 1
  assert.deepEqual(
    fed.give({ kind: 'wait-checked', waitedFor: 'tiny' }).map(({ kind }) => kind),
    ['group-ask'],
  )
  fed.nowMs = limits.readyWaitMsMax
  const [end] = fed.give({ kind: 'wait-checked', waitedFor: 'tiny (load 40%)' })
  assert.match(
    end?.kind === 'client-fail' ? end.error.message : '',
    /600 s of waiting for tiny \(load 40%\)/,
  )
})

test('a group that just lost an attempt is asked again after a moment', () => {
  const fed = new Fed()
  fed.give({ kind: 'attempt-lost', attempt: fed.offer(), cause: 'lost' })
  fed.nowMs = limits.attemptRetryMs + 1
  const [ask] = fed.give({ kind: 'wait-checked', waitedFor: '' })
  assert.deepEqual(ask, { kind: 'group-ask', avoid: [] })
})

test('an unloaded model ends what waits for it, and not what is being answered', () => {
  const waiting = new Fed()
  const [end] = waiting.give({ kind: 'deployment-removed' })
  assert.equal(end?.kind === 'client-fail' ? end.error.code : '', 'model-unloaded')
  const running = new Fed()
  running.offer()
  assert.deepEqual(running.give({ kind: 'deployment-removed' }), [])
})

test('a client that hangs up is told nothing more, and its attempt is cancelled', () => {
  const fed = new Fed()
  const attempt = fed.offer()
  assert.deepEqual(
    fed.give({ kind: 'client-gone' }).map(({ kind }) => kind),
    ['attempt-cancel'],
  )
  fed.tokens(attempt, 0, 3)
  fed.give({ kind: 'attempt-finished', attempt, reason: 'stop', parts: [], usage: usageOf(3) })
  assert.deepEqual(fed.sent, [])
  assert.deepEqual(fed.ends, [])
})

/** What a hostile network, dying machines and late frames make of the words of attempts. */
const deed = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('offer' as const), group: fc.constantFrom(g1, g2) }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('token' as const),
      attempt: fc.nat(4),
      position: fc.nat(12),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('accept' as const), attempt: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), attempt: fc.nat(4) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      attempt: fc.nat(4),
      length: fc.nat(12),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('gone' as const) }) },
)

function inputOf(act: typeof deed extends fc.Arbitrary<infer Act> ? Act : never): GenerationInput {
  const attempt = 'attempt' in act ? (`gen-1.${act.attempt}` as AttemptId) : ('' as AttemptId)
  switch (act.do) {
    case 'offer':
      return { kind: 'group-offered', group: act.group, machine: a }
    case 'token':
      return { kind: 'token-received', attempt, position: act.position, token: token(act.position) }
    case 'accept':
      return { kind: 'attempt-accepted', attempt, promptTokens: 7, cachedTokens: 0 }
    case 'lose':
      return { kind: 'attempt-lost', attempt, cause: 'lost' }
    case 'finish':
      return {
        kind: 'attempt-finished',
        attempt,
        reason: 'stop',
        parts: [],
        usage: usageOf(act.length),
      }
    case 'gone':
      return { kind: 'client-gone' }
    default:
      return assertNever(act)
  }
}

test('whatever comes in whatever order: one growing prefix, one end, each token counted once', () => {
  fc.assert(
    fc.property(fc.array(deed, { maxLength: 60 }), (deeds) => {
      const fed = new Fed()
      for (const act of deeds) {
        const before = fed.sent.length
        const wasEnded = fed.generation.phase === 'ended'
        const actions = fed.give(inputOf(act))
        if (wasEnded) assert.deepEqual(actions, [])
        assert.ok(fed.sent.length - before <= 1)
        for (const action of actions)
          if (action.kind === 'attempt-start') assert.deepEqual([...action.replay], fed.sent)
      }
      assert.deepEqual(
        fed.sent,
        fed.sent.map((_, index) => index),
      )
      assert.ok(fed.ends.length <= 1)
      assert.ok(fed.actions.filter(({ kind }) => kind === 'client-accept').length <= 1)
      const [end] = fed.ends
      if (end?.kind === 'client-finish') assert.equal(end.usage.completionTokens, fed.sent.length)
    }),
    { numRuns: 500 },
  )
})
