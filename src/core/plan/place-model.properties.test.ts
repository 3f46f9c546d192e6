import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { request } from '../../../test/planner-requests.ts'
import { tables } from '../../../test/planner-rows.ts'
import { machineId } from '../ids.ts'
import type { ChipFigures } from './cost/figures.ts'
import { type LinkFigures, linkFigures } from './cost/links.ts'
import { countParameters } from './model/shape.ts'
import { placeModel } from './place-model.ts'
import type { PlanLink, PlanMachine, PlanOutcome, PlanRequest, RankedPlan } from './types.ts'

const chips = tables.chips.map((entry) => entry.chip)
const linkEntries = tables.links.filter((entry) => entry.key !== 'cx7')
const models = [
  'llama-3.1-8b',
  'qwen3-30b-a3b',
  'gpt-oss-120b',
  'deepseek-v3',
  'llama-3.3-70b',
  'glm-4.7-flash',
  'qwen3.5-27b',
]

interface Drawn {
  readonly chip: ChipFigures
  readonly memory: number
}

const drawnMachine: fc.Arbitrary<Drawn> = fc
  .tuple(fc.constantFrom(...chips), fc.nat(10))
  .map(([chip, pick]) => {
    const options = chip.memoryOptionsBytes
    return { chip, memory: (options[pick % options.length] ?? 0) * chip.memoryShareUsable }
  })

function machines(drawn: readonly Drawn[]): PlanMachine[] {
  return drawn.map(({ chip, memory }, index) => ({
    id: machineId(`m${index}`),
    name: `m${index}`,
    chip,
    measurement: {},
    memoryFreeBytes: memory,
    role: 'always-on',
    onBattery: false,
    inJacclWorld: false,
    running: [],
    diskBytesPerSecond: null,
  }))
}

function links(list: readonly PlanMachine[], picks: readonly LinkFigures[]): PlanLink[] {
  const found: PlanLink[] = []
  for (const [index, source] of list.entries())
    for (const target of list.slice(index + 1)) {
      const figures = picks[found.length % picks.length]
      if (figures !== undefined) found.push({ source: source.id, target: target.id, figures })
    }
  return found
}

const questionFor = (least: number, most: number): fc.Arbitrary<PlanRequest> =>
  fc
    .record({
      drawn: fc.array(drawnMachine, { minLength: least, maxLength: most }),
      wires: fc.array(fc.constantFrom(...linkEntries), { minLength: 1, maxLength: 6 }),
      name: fc.constantFrom(...models),
      contextTokens: fc.constantFrom(512, 8192, 32_768),
      promptTokens: fc.constantFrom(64, 512, 2048),
      regime: fc.constantFrom('fast' as const, 'slow' as const),
    })
    .map(({ drawn, wires, name, contextTokens, promptTokens, regime }) => {
      const list = machines(drawn)
      return request(name, 'M3Ultra-512', {
        machines: list,
        links: links(
          list,
          wires.map((entry) => linkFigures(entry)),
        ),
        contextTokens,
        promptTokens: Math.min(promptTokens, contextTokens),
        regime,
      })
    })

const question = questionFor(1, 8)

/** Seconds of a typical answer. */
const answer = ({ figures }: RankedPlan): number =>
  figures.firstTokenSeconds.value + 255 / figures.tokensPerSecondAlone.value

/**
 * The best plan of each strategy and number of machines, whether or not anybody can run it yet, and
 * the chosen one. Heads dealt evenly are an even split, so uneven splits count the even ones too.
 */
function bestOfKinds(outcome: PlanOutcome): Map<string, RankedPlan> {
  const best = new Map<string, RankedPlan>()
  if (outcome.kind !== 'planned') return best
  if (outcome.chosen !== null) best.set('chosen', outcome.chosen)
  for (const plan of outcome.plans) {
    const { strategy, groups } = plan.placement
    if (strategy === 'replicas') continue
    const ranks = groups.flatMap((group) => group.stages.flatMap((stage) => stage.ranks)).length
    const kinds = strategy === 'tensor' ? ['tensor', 'uneven-tensor'] : [strategy]
    for (const kind of kinds) {
      const known = best.get(`${kind} of ${ranks}`)
      if (known === undefined || answer(plan) < answer(known)) best.set(`${kind} of ${ranks}`, plan)
    }
  }
  return best
}

function describe(plan: RankedPlan | undefined): string {
  if (plan === undefined) return 'no plan'
  const groups = plan.placement.groups.map((group) =>
    group.stages
      .map(
        ({ layers, ranks }) =>
          `${layers.from}-${layers.to}:${ranks.map((rank) => `${rank.machine}*${rank.share.toFixed(3)}`).join('&')}`,
      )
      .join(' → '),
  )
  return `${answer(plan)} s (${groups.join(' + ')})`
}

/** Every kind of plan may only get better. */
function assertNoWorse(before: PlanRequest, after: PlanRequest): void {
  const fresh = bestOfKinds(placeModel(after))
  for (const [kind, old] of bestOfKinds(placeModel(before))) {
    const now = fresh.get(kind)
    assert.ok(
      now !== undefined && answer(now) <= answer(old) * (1 + 1e-9),
      `${kind}: ${describe(old)} became ${describe(now)}`,
    )
  }
}

function bandwidthOf(asked: PlanRequest, id: string): number {
  const machine = asked.machines.find((candidate) => candidate.id === id)
  return machine?.chip?.memoryBandwidthBytesPerSecond ?? 0
}

const runs = { numRuns: Number(process.env['PLAN_RUNS'] ?? 150) }

test('placeModel() makes no kind of plan slower when one machine has more memory', () => {
  fc.assert(
    fc.property(
      question,
      fc.nat(7),
      fc.double({ min: 1, max: 4, noNaN: true }),
      (asked, pick, factor) => {
        const index = pick % asked.machines.length
        const roomier = asked.machines.map((machine, position) =>
          position === index
            ? { ...machine, memoryFreeBytes: machine.memoryFreeBytes * factor }
            : machine,
        )
        assertNoWorse(asked, { ...asked, machines: roomier })
      },
    ),
    runs,
  )
})

test('placeModel() makes no kind of plan slower when one machine has more bandwidth', () => {
  fc.assert(
    fc.property(
      question,
      fc.nat(7),
      fc.double({ min: 1, max: 4, noNaN: true }),
      (asked, pick, factor) => {
        const index = pick % asked.machines.length
        const faster = asked.machines.map((machine, position) =>
          position === index && machine.chip !== null
            ? {
                ...machine,
                chip: {
                  ...machine.chip,
                  memoryBandwidthBytesPerSecond:
                    machine.chip.memoryBandwidthBytesPerSecond * factor,
                },
              }
            : machine,
        )
        assertNoWorse(asked, { ...asked, machines: faster })
      },
    ),
    runs,
  )
})

/** Another link doubled, or replaced by RDMA. */
function withBetterLink(asked: PlanRequest, pick: number, upgrade: boolean): PlanRequest {
  const rdma = tables.links.find((entry) => entry.class === 'rdma')
  assert.ok(rdma !== undefined)
  const links = asked.links.map((link, position) => {
    if (position !== pick % asked.links.length) return link
    const { bytesPerSecond, latencySeconds } = link.figures
    const doubled = {
      ...link.figures,
      bytesPerSecond: bytesPerSecond * 2,
      latencySeconds: latencySeconds / 2,
    }
    return { ...link, figures: upgrade ? linkFigures(rdma) : doubled }
  })
  return { ...asked, links }
}

test('placeModel() makes no kind of plan slower when one link gets better', () => {
  fc.assert(
    fc.property(questionFor(2, 8), fc.nat(27), fc.boolean(), (asked, pick, upgrade) => {
      assertNoWorse(asked, withBetterLink(asked, pick, upgrade))
    }),
    runs,
  )
})

test('placeModel() predicts nothing above the roofline, and every plan fits', () => {
  fc.assert(
    fc.property(
      question,
      fc.constantFrom('fastest' as const, 'throughput' as const, 'context' as const),
      fc.constantFrom(1, 4, 16),
      (asked, goal, concurrency) => {
        const outcome = placeModel({ ...asked, concurrency, policy: { ...asked.policy, goal } })
        if (outcome.kind !== 'planned') return
        const { active, embedding } = countParameters(asked.model.shape)
        const bits = Math.min(
          asked.model.format.bitsPerWeight,
          asked.model.format.otherBitsPerWeight ?? 64,
        )
        const bytes = ((active - embedding) * bits) / 8
        for (const plan of outcome.plans) {
          const ranks = plan.placement.groups.flatMap((group) =>
            group.stages.flatMap((stage) => stage.ranks),
          )
          for (const rank of ranks) {
            const machine = asked.machines.find((candidate) => candidate.id === rank.machine)
            assert.ok(machine !== undefined)
            assert.ok(
              rank.memoryBytes <= machine.memoryFreeBytes,
              `${rank.memoryBytes} in ${machine.memoryFreeBytes}`,
            )
          }
          assert.equal(
            new Set(ranks.map((rank) => rank.machine)).size,
            ranks.length,
            'a machine holds one rank',
          )
          const roofs = plan.placement.groups.map((group) =>
            group.stages
              .flatMap((stage) => stage.ranks)
              .reduce((sum, rank) => sum + bandwidthOf(asked, rank.machine), 0),
          )
          const roof = Math.max(...roofs) / bytes
          for (const figure of [
            plan.figures.tokensPerSecondAlone.value,
            plan.figures.tokensPerSecondAlone.high,
          ])
            assert.ok(figure <= roof, `${figure} tok/s where memory allows ${roof}`)
          const group = plan.placement.groups[0]
          assert.ok(group !== undefined)
          const layers = group.stages.map((stage) => stage.layers)
          assert.equal(layers[0]?.from, 0)
          assert.equal(layers.at(-1)?.to, asked.model.shape.layers.length)
          for (const [index, stage] of layers.entries()) {
            assert.ok(stage.to > stage.from)
            if (index > 0) assert.equal(stage.from, layers[index - 1]?.to)
          }
          for (const stage of group.stages)
            assert.ok(Math.abs(stage.ranks.reduce((sum, rank) => sum + rank.share, 0) - 1) < 1e-9)
        }
      },
    ),
    runs,
  )
})
