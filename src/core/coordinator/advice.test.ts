// When the planner is asked before a group is placed, and what is done with its word.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  c,
  deploymentOf,
  recordOf,
  rosterOf,
  selfOf,
  wishes,
} from '../../../test/support/machine-states.ts'
import type { Advice, AdviceQuestion } from '../cluster/advice.ts'
import type { Deployment } from '../cluster/desired.ts'
import { type GroupPlan, machinesOf } from '../cluster/group-plan.ts'
import { initialState } from '../cluster/state.ts'
import type { Effect } from '../effects.ts'
import type { MachineId } from '../ids.ts'
import { limits } from '../limits.ts'

const range = { value: 20, low: 15, high: 25 }

function aloneOn(machine: MachineId): Extract<Advice, { kind: 'planned' }> {
  return {
    kind: 'planned',
    strategy: 'single',
    stages: [{ layers: 24, machines: [machine], sharing: 'alone' }],
    backend: 'ring',
    why: `best on ${machine.slice(0, 1)}`,
    kbFindings: [],
    predicted: { tokensPerSecond: range, firstTokenSeconds: range, restsOn: 'chip table' },
  }
}

const questionsIn = (effects: readonly Effect[]): readonly AdviceQuestion[] =>
  effects.flatMap((effect) => (effect.kind === 'advice-ask' ? [effect.question] : []))

/** Coordinates; b and c are there as well, until one is left out of `alive`. */
class Coordinator extends HandDriven {
  alive: readonly MachineId[] = [b, c]

  constructor(change: Partial<Deployment> = {}) {
    const registers = new Map([...rosterOf(a, b, c), ...wishes(deploymentOf(change))])
    super(selfOf(a), registers)
    this.state = initialState(selfOf(a), { registers, nowMs: this.nowMs, hasPlanner: true })
  }

  settle(ms = 3000): readonly Effect[] {
    for (const id of this.alive) this.meet(id)
    return this.wait(ms)
  }

  wait(ms: number): readonly Effect[] {
    return this.pass(ms, () => {
      for (const id of this.alive) this.hear(id)
    })
  }

  answer({ deployment, basis }: AdviceQuestion, advice: Advice): readonly Effect[] {
    const at = this.give({ kind: 'advice-learned', deployment, basis, advice })
    return [...at, ...this.wait(500)]
  }

  get started(): readonly GroupPlan[] {
    return [...this.state.starts.values()].map(({ plan }) => plan)
  }

  /** Waits until it asks, and no longer. */
  nextQuestion(msMax: number): AdviceQuestion | undefined {
    for (let waited = 0; waited < msMax; waited += 250) {
      const [question] = questionsIn(this.wait(250))
      if (question !== undefined) return question
    }
    return undefined
  }

  /** The group that is starting comes up on that machine, which says so. */
  comesUp(machine: MachineId): void {
    const [plan] = this.started
    assert.ok(plan !== undefined)
    const { group, formation } = plan
    const endpoints = [{ rank: 0, endpoint: null }]
    const message = { kind: 'group-prepared', group, formation, endpoints } as const
    this.give({ kind: 'message', from: machine, message })
    const holding = {
      plan,
      planHash: 'h',
      rank: 0,
      epoch: this.state.epochSeen,
      wish: 1,
      state: 'ready',
      sinceMs: this.nowMs,
      pid: 1,
      endpoint: null,
      phase: '',
      fraction: 1,
      tokens: 100,
      contextTokens: 4096,
      activeBytes: 1e9,
      tokensPerSecond: 0,
    } as const
    const record = { ...recordOf(machine), revision: 2, holdings: [holding] }
    this.give({ kind: 'message', from: machine, message: { kind: 'record', record } })
    this.wait(250)
    assert.equal(this.started.length, 0)
  }
}

test('a model that a request loads is placed where the planner says, once it was asked', () => {
  const machine = new Coordinator({ keepAliveMs: 60_000 })
  const [question, ...more] = questionsIn(machine.settle())
  assert.ok(question !== undefined)
  assert.deepEqual(more, [])
  assert.equal(machine.started.length, 0)
  const advice = aloneOn(c)
  machine.answer(question, advice)
  const [plan] = machine.started
  assert.ok(plan !== undefined)
  assert.deepEqual(machinesOf(plan), [c])
  const { why, kbFindings, predicted } = advice
  assert.deepEqual(plan.reason, { why, kbFindings, predicted })
})

test('a planner that does not answer is waited for no longer than adviceWaitMsMax', () => {
  const machine = new Coordinator()
  machine.settle()
  machine.wait(limits.adviceWaitMsMax)
  assert.match(
    machine.started.map(({ reason }) => reason?.why).join(),
    /by free memory.*did not answer in time/,
  )
})

test('the word of the load is taken without another question while nothing has changed', () => {
  const machine = new Coordinator()
  const [question] = questionsIn(machine.settle())
  assert.ok(question !== undefined)
  const advice = { ...aloneOn(b), basis: question.basis }
  const again = new Coordinator({ advice })
  assert.deepEqual(questionsIn(again.settle()), [])
  assert.deepEqual(again.started.flatMap(machinesOf), [b])
})

test('nothing that runs is asked about when a machine joins, and it is not moved', () => {
  const machine = new Coordinator({ advice: aloneOn(b) })
  machine.alive = [b]
  const [question] = questionsIn(machine.settle())
  assert.ok(question !== undefined)
  machine.answer(question, aloneOn(b))
  machine.comesUp(b)
  machine.alive = [b, c]
  machine.meet(c)
  const effects = machine.wait(6000)
  assert.deepEqual(questionsIn(effects), [])
  assert.ok(
    !effects.some(
      (effect) => effect.kind === 'message-send' && effect.message.kind === 'group-stop',
    ),
  )
})

test('a group that lost its machine is asked about anew, and older advice does not come back', () => {
  const machine = new Coordinator()
  const [first] = questionsIn(machine.settle())
  assert.ok(first !== undefined)
  machine.answer(first, aloneOn(c))
  machine.comesUp(c)
  machine.alive = [b]
  const second = machine.nextQuestion(10_000)
  assert.ok(second !== undefined)
  assert.notEqual(second.basis, first.basis)
  machine.answer(second, aloneOn(b))
  assert.deepEqual(machine.started.flatMap(machinesOf), [b])
})

test('a probe makes a model that is placed nowhere be asked about again', () => {
  const machine = new Coordinator({
    model: { ...deploymentOf().model, weightsBytes: 1e15, parameters: 1e15 },
  })
  const [first] = questionsIn(machine.settle())
  assert.ok(first !== undefined)
  machine.answer(first, { kind: 'unknown', why: 'run "bushel probe"' })
  assert.deepEqual(questionsIn(machine.wait(3000)), [])
  const effects = machine.give({ kind: 'measurements-taken', atMs: 77 })
  const [second] = questionsIn([...effects, ...machine.wait(500)])
  assert.ok(second !== undefined && second.basis !== first.basis)
})

test('each replica is asked about, away from the machines that serve already', () => {
  const machine = new Coordinator({ replicas: 2 })
  const [first] = questionsIn(machine.settle())
  assert.equal(first?.groups, 2)
  const [second] = questionsIn(machine.answer(first, aloneOn(b)))
  assert.ok(second !== undefined)
  assert.deepEqual([second.groups, second.avoid], [1, [b]])
  machine.answer(second, aloneOn(c))
  assert.deepEqual(machine.started.flatMap(machinesOf), [b, c])
})

test('an older plan is kept when the planner cannot tell any more and its machines are there', () => {
  const machine = new Coordinator({ advice: { ...aloneOn(c), basis: 'of other machines' } })
  const [question] = questionsIn(machine.settle())
  assert.ok(question !== undefined)
  machine.answer(question, { kind: 'unknown', why: 'its files are elsewhere' })
  assert.deepEqual(machine.started.flatMap(machinesOf), [c])
})

test('what a person fixed is never asked about', () => {
  const machine = new Coordinator({ strategy: 'single' })
  assert.deepEqual(questionsIn(machine.settle()), [])
  assert.deepEqual(
    machine.started.map(({ reason }) => reason),
    [undefined],
  )
})
