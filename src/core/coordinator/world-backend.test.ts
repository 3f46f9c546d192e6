// A group that asks for tensor, from the wish to the environment of its ranks, on Macs made to order.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandDriven,
  a,
  b,
  c,
  deploymentOf,
  rosterOf,
  selfOf,
  wishes,
} from '../../../test/support/machine-states.ts'
import { probeAll } from '../../../test/support/captures.ts'
import { type Changes, scriptCluster } from '../../../test/support/scripted-macs.ts'
import { loadFrameFor } from '../../runtime/load-frame.ts'
import type { Deployment } from '../cluster/desired.ts'
import type { GroupPlan } from '../cluster/group-plan.ts'
import { previewPlacement } from './preview.ts'
import type { Effect } from '../effects.ts'
import { limits } from '../limits.ts'
import type { MachineFacts } from '../machine-facts/machine.ts'

const mac = { platform: 'darwin-arm64' }

/** Coordinates and lends nothing; b and c are the Macs. */
class Coordinator extends HandDriven {
  readonly #others: typeof mac

  constructor(deployment: Partial<Deployment> = {}, others = mac) {
    const wish = deploymentOf({ strategy: 'tensor', machines: [b, c], ...deployment })
    super(
      selfOf(a, { memoryLendBytes: 0, ...mac }),
      new Map([...rosterOf(a, b, c), ...wishes(wish)]),
    )
    this.#others = others
  }

  settle(ms = 3000): readonly Effect[] {
    this.meet(b, this.#others)
    this.meet(c, this.#others)
    return this.wait(ms)
  }

  wait(ms: number): readonly Effect[] {
    return this.pass(ms, () => {
      this.hear(b)
      this.hear(c)
    })
  }

  learn(machines: readonly MachineFacts[]): readonly Effect[] {
    const at = this.give({ kind: 'facts-learned', facts: { machines, silent: [] } })
    return [...at, ...this.wait(2 * limits.orderRepeatMs)]
  }
}

const pairFacts = (changes: Record<string, Changes> = {}): Promise<readonly MachineFacts[]> =>
  probeAll(
    scriptCluster(
      { macs: [{ name: 'b' }, { name: 'c' }], cables: [{ ends: ['b:1', 'c:2'] }] },
      changes,
    ),
  )

function prepared(effects: readonly Effect[]): GroupPlan | undefined {
  for (const effect of effects)
    if (effect.kind === 'message-send' && effect.message.kind === 'group-prepare')
      return effect.message.plan
  return undefined
}

const asks = (effects: readonly Effect[]): number =>
  effects.filter((effect) => effect.kind === 'facts-collect').length

test('a tensor group on Macs asks what they are made of, once, and then gets JACCL by itself', async () => {
  const coordinator = new Coordinator()
  const before = coordinator.settle()
  assert.equal(asks(before), 1)
  assert.equal(prepared(before), undefined)
  const plan = prepared(coordinator.learn(await pairFacts()))
  const stage = plan?.stages[0]
  assert.equal(stage?.backend, 'jaccl')
  assert.match(stage?.why ?? '', /^JACCL mesh: all \d+ checks pass$/)
  assert.deepEqual(
    stage?.devices?.map((row) => row.map((cell) => cell !== null)),
    [
      [false, true],
      [true, false],
    ],
  )
})

test('its ranks get the matrix and meet at the address that all of them reach', async () => {
  const coordinator = new Coordinator()
  coordinator.settle()
  const plan = prepared(coordinator.learn(await pairFacts()))
  const meeting = plan?.stages[0]?.meeting ?? ''
  assert.match(meeting, /^10\.|^192\.168\./)
  assert.ok(plan !== undefined)
  const endpoint = { host: '127.0.0.1', port: 1 }
  const frames = [0, 1].map((rank) =>
    loadFrameFor({
      plan,
      rank,
      endpoints: [
        { ...endpoint, ring: { host: meeting, port: 4321 } },
        { ...endpoint, ring: { host: '192.168.0.2', port: 9 } },
      ],
      secret: 's',
      files: { engine: 'mlx', path: '/models/tiny' } as never,
    }),
  )
  for (const [rank, frame] of frames.entries()) {
    assert.deepEqual(frame.world.env, {
      MLX_RANK: String(rank),
      MLX_JACCL_COORDINATOR: `${meeting}:4321`,
    })
    assert.deepEqual(
      JSON.parse(frame.world.files['MLX_IBV_DEVICES'] ?? ''),
      plan.stages[0]?.devices,
    )
  }
})

test('where a check fails the group gets a ring, and says which check it was', async () => {
  const coordinator = new Coordinator()
  coordinator.settle()
  const facts = await pairFacts({ b: { rdma_ctl_status: 'disabled\n' } })
  const stage = prepared(coordinator.learn(facts))?.stages[0]
  assert.equal(stage?.backend, 'ring')
  assert.match(stage?.why ?? '', /^TCP ring.*not JACCL: .*RDMA is disabled on b/)
  assert.equal(stage?.devices, undefined)
})

test('JACCL that was asked for is refused with the reason instead of becoming a ring', async () => {
  const coordinator = new Coordinator({ backend: 'jaccl' })
  coordinator.settle()
  const facts = await pairFacts({ b: { rdma_ctl_status: 'disabled\n' } })
  assert.equal(prepared(coordinator.learn(facts)), undefined)
  const wish = deploymentOf({ strategy: 'tensor', machines: [b, c], backend: 'jaccl' })
  const version = { counter: 1, machine: a, boot: 'x' }
  const outcome = previewPlacement(coordinator.state, { ...wish, version })
  assert.ok(outcome.kind === 'refused')
  assert.match(outcome.reason, /^JACCL cannot be used: .*RDMA is disabled on b/)
})

test('machines that are no Macs are not asked, and a question without answer ends in a ring', () => {
  const linux = new Coordinator({}, { platform: 'linux-x64' })
  const effects = linux.settle()
  assert.equal(asks(effects), 0)
  assert.equal(prepared(effects)?.stages[0]?.why, 'TCP ring; not JACCL: b is no Mac')
  const unheard = new Coordinator()
  unheard.settle()
  const stage = prepared(unheard.wait(limits.factsWaitMsMax + 2000))?.stages[0]
  assert.equal(stage?.backend, 'ring')
  assert.match(stage?.why ?? '', /b did not say what it is made of/)
})
