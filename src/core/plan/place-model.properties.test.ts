import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { request } from '../../../test/planner-requests.ts'
import { tables } from '../../../test/planner-rows.ts'
import { machineId } from '../ids.ts'
import type { ChipFigures } from './cost/figures.ts'
import { type LinkFigures, linkFigures } from './cost/links.ts'
import { prefillChunkTokens } from './cost/prefill.ts'
import { countParameters } from './model/shape.ts'
import { placeModel } from './place-model.ts'
import type { PlanLink, PlanMachine, PlanRequest, RankedPlan } from './types.ts'

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

interface Scope {
  readonly machines: readonly [least: number, most: number]
  readonly kinds: number
  readonly wires: number
  readonly prompts: readonly number[]
}

const questionFor = (scope: Scope): fc.Arbitrary<PlanRequest> =>
  fc
    .record({
      kinds: fc.array(drawnMachine, { minLength: 1, maxLength: scope.kinds }),
      picks: fc.array(fc.nat(scope.kinds - 1), {
        minLength: scope.machines[0],
        maxLength: scope.machines[1],
      }),
      wires: fc.array(fc.constantFrom(...linkEntries), { minLength: 1, maxLength: scope.wires }),
      name: fc.constantFrom(...models),
      contextTokens: fc.constantFrom(512, 8192, 32_768),
      promptTokens: fc.constantFrom(...scope.prompts),
      regime: fc.constantFrom('fast' as const, 'slow' as const),
    })
    .map(({ kinds, picks, wires, name, contextTokens, promptTokens, regime }) => {
      const list = machines(picks.flatMap((pick) => kinds[pick % kinds.length] ?? []))
      return request(name, 'M3Ultra-512', {
        machines: list,
        links: links(
          list,
          wires.map((entry) => linkFigures(entry)),
        ),
        contextTokens: Math.max(contextTokens, promptTokens),
        promptTokens,
        regime,
      })
    })

/** One chunk, or several that follow each other through the stages. */
const shortPrompts = [64, 512, 2048]
const longPrompts = [3000, 8192, 32_768]
const few: Scope = { machines: [1, 8], kinds: 8, wires: 6, prompts: shortPrompts }
const question = questionFor(few)

/** Seconds of a typical answer. */
const answer = ({ figures }: RankedPlan): number =>
  figures.firstTokenSeconds.value + 255 / figures.tokensPerSecondAlone.value

/**
 * The best plan of each strategy and number of machines, whether or not anybody can run it yet, and
 * the chosen one. Heads dealt evenly are an even split, so uneven splits count the even ones too. Not
 * all sizes of large clusters are told: there, the best of each strategy.
 */
function bestOfKinds(asked: PlanRequest): Map<string, RankedPlan> {
  const outcome = placeModel(asked)
  const machineCount = asked.machines.length
  const best = new Map<string, RankedPlan>()
  if (outcome.kind !== 'planned') return best
  if (outcome.chosen !== null) best.set('chosen', outcome.chosen)
  for (const plan of outcome.plans) {
    const { strategy, groups } = plan.placement
    if (strategy === 'replicas') continue
    const ranks = groups.flatMap((group) => group.stages.flatMap((stage) => stage.ranks)).length
    const names = strategy === 'tensor' ? ['tensor', 'uneven-tensor'] : [strategy]
    for (const name of names) {
      const kind = machineCount > few.machines[1] ? name : `${name} of ${ranks}`
      const known = best.get(kind)
      if (known === undefined || answer(plan) < answer(known)) best.set(kind, plan)
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

/** Every kind of plan may only get better; of long prompts the chosen one. */
function assertNoWorse(before: PlanRequest, after: PlanRequest): void {
  const fresh = bestOfKinds(after)
  for (const [kind, old] of bestOfKinds(before)) {
    if (before.promptTokens > prefillChunkTokens && kind !== 'chosen') continue
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

interface Change {
  readonly what: 'memory' | 'bandwidth' | 'link' | 'rdma'
  readonly pick: number
  readonly factor: number
}

const changeOf = (...kinds: readonly Change['what'][]): fc.Arbitrary<Change> =>
  fc.record({
    what: fc.constantFrom(...kinds),
    pick: fc.nat(119),
    factor: fc.double({ min: 1, max: 4, noNaN: true }),
  })

function improved(asked: PlanRequest, change: Change): PlanRequest {
  return change.what === 'memory' || change.what === 'bandwidth'
    ? withBetterMachine(asked, change)
    : withBetterLink(asked, change)
}

function withBetterMachine(asked: PlanRequest, { what, pick, factor }: Change): PlanRequest {
  const list = asked.machines.map((machine, position) => {
    if (position !== pick % asked.machines.length) return machine
    if (what === 'memory') return { ...machine, memoryFreeBytes: machine.memoryFreeBytes * factor }
    const { chip } = machine
    if (chip === null) return machine
    const memoryBandwidthBytesPerSecond = chip.memoryBandwidthBytesPerSecond * factor
    return { ...machine, chip: { ...chip, memoryBandwidthBytesPerSecond } }
  })
  return { ...asked, machines: list }
}

/** Another link made faster, or replaced by RDMA. */
function withBetterLink(asked: PlanRequest, { what, pick, factor }: Change): PlanRequest {
  const rdma = tables.links.find((entry) => entry.class === 'rdma')
  assert.ok(rdma !== undefined)
  const list = asked.links.map((link, position) => {
    if (position !== pick % asked.links.length) return link
    const { bytesPerSecond, latencySeconds } = link.figures
    const faster = {
      ...link.figures,
      bytesPerSecond: bytesPerSecond * factor,
      latencySeconds: latencySeconds / factor,
    }
    return { ...link, figures: what === 'rdma' ? linkFigures(rdma) : faster }
  })
  return { ...asked, links: list }
}

for (const [what, kinds] of [
  ['one machine has more memory', ['memory']],
  ['one machine has more bandwidth', ['bandwidth']],
  ['one link gets better', ['link', 'rdma']],
] as const)
  test(`placeModel() makes no kind of plan slower when ${what}`, () => {
    fc.assert(
      fc.property(question, changeOf(...kinds), (asked, change) => {
        assertNoWorse(asked, improved(asked, change))
      }),
      runs,
    )
  })

const everyChange = changeOf('memory', 'bandwidth', 'link', 'rdma')

test('placeModel() chooses nothing slower for a long prompt when a machine or a link gets better', () => {
  fc.assert(
    fc.property(questionFor({ ...few, prompts: longPrompts }), everyChange, (asked, change) => {
      assertNoWorse(asked, improved(asked, change))
    }),
    runs,
  )
})

test('placeModel() makes no plan slower in clusters of two kinds of machine, up to sixteen of them', () => {
  const many: Scope = {
    machines: [9, 16],
    kinds: 2,
    wires: 1,
    prompts: [...shortPrompts, ...longPrompts],
  }
  fc.assert(
    fc.property(questionFor(many), everyChange, (asked, change) => {
      assertNoWorse(asked, improved(asked, change))
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
