// A coordinator whose turns are taken by hand, and the orders it gives.
import type { Deployment } from '../../src/core/cluster/desired.ts'
import type { GroupPlan } from '../../src/core/cluster/group-plan.ts'
import type { GroupMessage } from '../../src/core/cluster/messages.ts'
import type { Holding } from '../../src/core/cluster/record.ts'
import type { SelfState } from '../../src/core/cluster/state.ts'
import type { Effect } from '../../src/core/effects.ts'
import { HandDriven, a, b, c, rosterOf, selfOf, wishes } from './machine-states.ts'

/** A coordinator that lends nothing itself, and two machines that do. */
export class Coordinator extends HandDriven {
  readonly #others: Partial<SelfState>

  constructor(deployments: readonly Deployment[], others: Partial<SelfState> = {}) {
    super(
      selfOf(a, { memoryLendBytes: 0 }),
      new Map([...rosterOf(a, b, c), ...wishes(...deployments)]),
    )
    this.#others = others
  }

  /** The others beat and have said what they are. */
  settle(ms = 3000): readonly Effect[] {
    this.meet(b, this.#others)
    this.meet(c, this.#others)
    return this.pass(ms, () => this.beats())
  }

  beats(): void {
    this.hear(b)
    this.hear(c)
  }

  answer(from: typeof b, message: GroupMessage): readonly Effect[] {
    return this.give({ kind: 'message', from, message })
  }
}

export function orders<Kind extends GroupMessage['kind']>(
  effects: readonly Effect[],
  kind: Kind,
): readonly { to: string; message: Extract<GroupMessage, { kind: Kind }> }[] {
  return effects.flatMap((effect) =>
    effect.kind === 'message-send' && effect.message.kind === kind
      ? [{ to: effect.to, message: effect.message as Extract<GroupMessage, { kind: Kind }> }]
      : [],
  )
}

/** The head of a group as its machine would show it. */
export function holdingOf(plan: GroupPlan): Holding {
  return {
    plan,
    planHash: 'x',
    rank: 0,
    epoch: { counter: 1, machine: a },
    state: 'ready',
    sinceMs: 0,
    pid: 1,
    endpoint: null,
    phase: '',
    fraction: 1,
    tokens: 0,
    contextTokens: 0,
    activeBytes: 0,
    tokensPerSecond: 0,
  }
}
