import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  group,
  planOf,
  rosterOf,
  selfOf,
  tinyModel,
} from '../../../test/support/machine-states.ts'
import type { GroupPlan } from '../cluster/group-plan.ts'
import type { GroupMessage } from '../cluster/messages.ts'
import { acceptsNow } from '../cluster/state.ts'
import type { Effect } from '../effects.ts'
import { limits } from '../limits.ts'
import type { RankProgress, RankReport } from '../machine/inputs.ts'

type Stop = Extract<GroupMessage, { kind: 'group-stop' }>

/** An agent whose coordinator is b. */
class Agent extends HandDriven {
  constructor(change: Parameters<typeof selfOf>[1] = {}) {
    super(selfOf(a, change), rosterOf(a, b))
    this.meet(b)
  }

  order(message: GroupMessage): readonly Effect[] {
    return this.give({ kind: 'message', from: b, message })
  }

  prepare(plan: GroupPlan, counter = 1, version = '1.0.0'): readonly Effect[] {
    const epoch = { counter, machine: b }
    return this.order({ kind: 'group-prepare', epoch, wish: 1, plan, version })
  }

  commit(plan: GroupPlan, counter = 1): readonly Effect[] {
    const { formation } = plan
    const epoch = { counter, machine: b }
    const told = { endpoints: [null], secret: 's' }
    return this.order({ kind: 'group-commit', epoch, group: plan.group, formation, ...told })
  }

  stop(plan: GroupPlan, how: Partial<Stop> = {}): readonly Effect[] {
    const epoch = { counter: 1, machine: b }
    const { deployment } = plan
    return this.order({
      kind: 'group-stop',
      epoch,
      group: plan.group,
      deployment,
      reason: 'test',
      drain: false,
      ...how,
    })
  }

  report(report: RankReport, rank = 0): readonly Effect[] {
    return this.give({ kind: 'rank-report', group: group('g1'), rank, report })
  }

  /** A rank that is up. */
  running(): this {
    this.prepare(planOf([a]))
    this.commit(planOf([a]))
    this.report({ kind: 'started', pid: 7 })
    this.report({ kind: 'ready', contextTokens: 100, activeBytes: 1 })
    return this
  }

  rankState(): string | undefined {
    return [...this.state.holdings.values()][0]?.state
  }

  /** Time passes while the rank says this of itself; b goes on beating. */
  watch(ms: number, progress: Partial<RankProgress> = {}): readonly Effect[] {
    const all: Effect[] = []
    const seen = { group: group('g1'), rank: 0, step: 1, busy: true, frameAgeMs: 0 }
    const figures = { tokens: 0, tokensPerSecond: 0, activeBytes: 0, queue: 0 }
    for (let passed = 0; passed < ms; passed += 250) {
      this.nowMs += 250
      this.hear(b)
      const one = { ...seen, ...figures, ...progress }
      all.push(...this.give({ kind: 'tick', lagMs: 0, progress: [one] }))
    }
    return all
  }
}

function answerIn(effects: readonly Effect[]): GroupMessage | undefined {
  for (const effect of effects)
    if (effect.kind === 'message-send' && effect.message.kind.startsWith('group-'))
      return effect.message as GroupMessage
  return undefined
}

function signalsIn(effects: readonly Effect[]): readonly string[] {
  return effects.flatMap((effect) => (effect.kind === 'rank-stop' ? [effect.signal] : []))
}

test('an agent reserves before it answers, and its epoch is on disk before the answer leaves', () => {
  const agent = new Agent()
  const effects = agent.prepare(planOf([a]))
  assert.equal(effects[0]?.kind, 'journal-write')
  assert.equal(answerIn(effects)?.kind, 'group-prepared')
  assert.equal(agent.rankState(), 'reserved')
})

test('an agent obeys no epoch below the highest it has seen, and says which that is', () => {
  const agent = new Agent()
  agent.prepare(planOf([a]), 5)
  const refusal = answerIn(agent.prepare(planOf([a], { group: group('g2') }), 4))
  assert.ok(refusal?.kind === 'group-refused')
  assert.deepEqual(refusal.epochSeen, { counter: 5, machine: b })
  assert.match(refusal.reason, /older than epoch 5/)
  agent.stop(planOf([a]), { epoch: { counter: 4, machine: b } })
  assert.equal(agent.rankState(), 'reserved')
  agent.commit(planOf([a]), 4)
  assert.equal(agent.rankState(), 'reserved')
})

test('an agent gives no memory twice', () => {
  const agent = new Agent()
  agent.prepare(planOf([a], {}, 5e9))
  const refusal = answerIn(agent.prepare(planOf([a], { group: group('g2') }, 5e9)))
  assert.match(refusal?.kind === 'group-refused' ? refusal.reason : '', /bytes free/)
})

const impossible: readonly (readonly [string, Parameters<typeof selfOf>[1], RegExp])[] = [
  ['a client', { role: 'client' }, /client/],
  [
    'a machine that is being emptied',
    { accepts: { ok: false, reason: 'on battery' } },
    /on battery/,
  ],
  ['a machine without the files', { models: [] }, /does not have the files of tiny/],
]
for (const [who, change, reason] of impossible) {
  test(`${who} refuses a rank, with the reason`, () => {
    const refusal = answerIn(new Agent(change).prepare(planOf([a])))
    assert.match(refusal?.kind === 'group-refused' ? refusal.reason : '', reason)
  })
}

test('a machine of another version refuses a group of several, and takes one of its own', () => {
  const agent = new Agent({ version: '1.1.0' })
  const refusal = answerIn(agent.prepare(planOf([a, b])))
  assert.match(
    refusal?.kind === 'group-refused' ? refusal.reason : '',
    /runs version 1\.1\.0, the plan is for 1\.0\.0/,
  )
  assert.equal(answerIn(agent.prepare(planOf([a])))?.kind, 'group-prepared')
})

test('a group is not put together again with a machine of another version', () => {
  const agent = new Agent()
  agent.prepare(planOf([a, b]))
  const refusal = answerIn(agent.prepare(planOf([a, b], { formation: 1 }), 1, '1.1.0'))
  assert.match(
    refusal?.kind === 'group-refused' ? refusal.reason : '',
    /runs version 1\.0\.0, the plan is for 1\.1\.0/,
  )
})

test('a plan that holds nothing for this machine is refused', () => {
  const refusal = answerIn(new Agent().prepare(planOf([b])))
  assert.match(refusal?.kind === 'group-refused' ? refusal.reason : '', /no rank for a/)
})

test('the same order once more is answered once more and changes nothing', () => {
  const agent = new Agent()
  agent.prepare(planOf([a]))
  const { holdings } = agent.state
  assert.equal(answerIn(agent.prepare(planOf([a])))?.kind, 'group-prepared')
  assert.equal(agent.state.holdings, holdings)
  const starts = [...agent.commit(planOf([a])), ...agent.commit(planOf([a]))]
  assert.equal(starts.filter((effect) => effect.kind === 'rank-start').length, 1)
})

test('another plan under the name of a group that is held is refused', () => {
  const agent = new Agent()
  agent.prepare(planOf([a]))
  const other = planOf([a], { model: { ...tinyModel, contextTokens: 1 } })
  assert.equal(answerIn(agent.prepare(other))?.kind, 'group-refused')
})

test('a commit for a group that was never prepared starts nothing', () => {
  const effects = new Agent().commit(planOf([a]))
  assert.deepEqual(
    effects.filter((effect) => effect.kind === 'rank-start'),
    [],
  )
})

test('a reservation that nobody commits is given back', () => {
  const agent = new Agent()
  agent.prepare(planOf([a]))
  agent.pass(limits.reservationMsMax - 1000, () => agent.hear(b))
  assert.equal(agent.state.holdings.size, 1)
  agent.pass(1500, () => agent.hear(b))
  assert.equal(agent.state.holdings.size, 0)
})

test('a start that was abandoned gives back what is reserved, and nothing that runs', () => {
  const reserving = new Agent()
  reserving.prepare(planOf([a]))
  reserving.stop(planOf([a]), { reservedOnly: true })
  assert.equal(reserving.rankState(), undefined)
  const running = new Agent().running()
  assert.deepEqual(signalsIn(running.stop(planOf([a]), { reservedOnly: true })), [])
  assert.equal(running.rankState(), 'ready')
})

test('a rank with work whose steps stand still is ended, and one without work is left alone', () => {
  const idle = new Agent().running()
  assert.deepEqual(signalsIn(idle.watch(20_000, { busy: false })), [])
  assert.equal(idle.rankState(), 'ready')
  const stuck = new Agent().running()
  assert.deepEqual(signalsIn(stuck.watch(limits.rankStallMsMax - 500)), [])
  assert.deepEqual(signalsIn(stuck.watch(1500)), ['TERM'])
  assert.equal(stuck.rankState(), 'stopping')
})

test('a rank that makes steps is not ended, however long it works', () => {
  const agent = new Agent().running()
  for (let step = 2; step < 20; step++) assert.deepEqual(signalsIn(agent.watch(1000, { step })), [])
})

test('a rank that ignores TERM gets KILL, again and again, and then the machine takes no new one', () => {
  const agent = new Agent().running()
  assert.deepEqual(signalsIn(agent.stop(planOf([a]))), ['TERM'])
  const later = signalsIn(agent.watch(limits.rankTermMsMax + 500))
  assert.deepEqual(later, ['KILL'])
  const more = signalsIn(agent.watch(limits.rankUndeadMs + limits.rankKillRepeatMs))
  assert.ok(more.length >= 5 && more.every((signal) => signal === 'KILL'), more.join())
  assert.match(acceptsNow(agent.state).reason, /does not end even when killed/)
  agent.report({ kind: 'exited', cause: 'at last', tokens: 0 })
  assert.equal(acceptsNow(agent.state).ok, true)
})

test('a rank that is to finish its answers first is signalled only when it has', () => {
  const agent = new Agent().running()
  const effects = agent.stop(planOf([a]), { drain: true })
  assert.deepEqual(effects.filter((effect) => effect.kind === 'rank-drain').length, 1)
  assert.deepEqual(signalsIn(effects), [])
  assert.deepEqual(signalsIn(agent.report({ kind: 'drained' })), ['TERM'])
})

test('a rank that was asked to end is no failure; one that died by itself is', () => {
  const asked = new Agent().running()
  asked.stop(planOf([a]))
  asked.report({ kind: 'exited', cause: 'signal', tokens: 0 })
  assert.deepEqual(asked.state.failures, [])
  const died = new Agent().running()
  died.report({ kind: 'exited', cause: 'exit code 1', tokens: 3 })
  assert.equal(died.state.failures[0]?.cause, 'exit code 1')
  assert.equal(died.state.failures[0].excused, false)
  assert.equal(died.state.holdings.size, 0)
})

test('a rank that had worked is excused when it dies', () => {
  const agent = new Agent().running()
  agent.report({ kind: 'exited', cause: 'exit code 1', tokens: limits.workedTokensMin })
  assert.equal(agent.state.failures[0]?.excused, true)
})

test('of a rank that is no head its steps count, since it makes no tokens', () => {
  const died = { kind: 'exited', cause: 'exit code 1', tokens: 0 } as const
  const excused = (rank: number, steps: number): boolean | undefined => {
    const agent = new Agent()
    agent.prepare(planOf(rank === 0 ? [a, b] : [b, a]))
    agent.report({ ...died, steps }, rank)
    return agent.state.failures[0]?.excused
  }
  assert.equal(excused(1, limits.workedTokensMin), true)
  assert.equal(excused(1, limits.workedTokensMin - 1), false)
  assert.equal(excused(0, limits.workedTokensMin), false)
})

test('reports of a rank that nobody holds change nothing', () => {
  const agent = new Agent()
  const before = agent.state
  agent.report({ kind: 'ready', contextTokens: 1, activeBytes: 1 })
  agent.report({ kind: 'exited', cause: 'x', tokens: 0 })
  assert.equal(agent.state.holdings, before.holdings)
  assert.equal(agent.state.failures, before.failures)
})
